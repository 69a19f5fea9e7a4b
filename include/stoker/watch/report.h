// One report document, and three ways to show it: JSON as it is (schema stoker.report.v1, docs/formats/report.md),
// lines for a terminal, and one HTML page without any reference to the network.
#pragma once

#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/base/status.h"
#include "stoker/watch/metrics.h"
#include "stoker/watch/run_data.h"
#include "stoker/watch/verdict.h"

namespace stoker::watch {

// `verdict` is the JSON of a verdict: what run.json holds, or a fresh one. Lists are thinned, so that a run of any
// length gives a document of at most about a megabyte.
Json make_report(const RunData& data, const Metrics& metrics, const Json& verdict);

// What ended the run, in words: "killed by SIGKILL after 12.3 s (out of memory: …)".
std::string outcome_in_words(const Json& run, double seconds);

// Lines of at most `columns` characters, as many as fit a screen.
std::vector<std::string> terminal_report(const Json& report, std::size_t columns = 100);

// Errors: kUnsupported when this build has no page in it (the hint says how to get it).
Result<std::string> html_page(const Json& report);

// Before and after, and whether the prediction held: schema stoker.comparison.v1. The prediction is the one that
// `before` holds in its run.json; it was written when that run ended. Both are report documents.
// Errors: kBadInput when a run has too few steps to compare.
Result<Json> compare_reports(const Json& before, const Json& after);
std::vector<std::string> terminal_comparison(const Json& comparison);

}  // namespace stoker::watch
