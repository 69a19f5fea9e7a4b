#include "watch/metrics/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace stoker::watch {
namespace {

enum class Kind : std::uint8_t { kNone, kPhase, kWait, kStart, kForward, kEvalForward, kBackward, kOptimizer, kEval };

struct Meaning {
  Kind kind = Kind::kNone;
  Phase phase = Phase::kOther;
};

Meaning meaning_of(std::string_view name) {
  static const std::map<std::string_view, Meaning> known = {
      {"data.wait", {Kind::kWait, Phase::kWait}},
      {"data.start", {Kind::kStart, Phase::kLoaderStart}},
      {"copy", {Kind::kPhase, Phase::kCopy}},
      {"forward", {Kind::kForward, Phase::kForward}},
      {"eval.forward", {Kind::kEvalForward, Phase::kForward}},
      {"backward", {Kind::kBackward, Phase::kBackward}},
      {"optimizer", {Kind::kOptimizer, Phase::kOptimizer}},
      {"checkpoint", {Kind::kPhase, Phase::kCheckpoint}},
      {"eval", {Kind::kEval, Phase::kEvaluation}},
      {"compile", {Kind::kPhase, Phase::kCompile}},
      {"gc", {Kind::kPhase, Phase::kGc}},
  };
  const auto found = known.find(name);
  return found == known.end() ? Meaning{} : found->second;
}

// The trainee's main thread; where none is marked, the one that steps the optimizer most.
std::uint32_t main_thread(const RunData& data, const std::vector<Meaning>& meanings) {
  for (std::uint32_t i = 0; i < data.threads.size(); ++i) {
    if (data.threads[i].main) return i;
  }
  std::map<std::uint32_t, std::size_t> steps;
  for (const Span& span : data.spans) steps[span.thread] += meanings[span.name].kind == Kind::kOptimizer ? 1 : 0;
  const auto most =
      std::max_element(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == steps.end() ? 0 : most->first;
}

struct MainSpan {
  const Span* span = nullptr;
  Meaning meaning;
};

bool trains(Kind kind) { return kind != Kind::kNone && kind != Kind::kPhase && kind != Kind::kEval; }

class Builder {
 public:
  explicit Builder(const RunData& data) : data_(data) {
    for (const std::string& name : data.names) meanings_.push_back(meaning_of(name));
    main_ = main_thread(data, meanings_);
    for (const Span& span : data.spans) {
      const Meaning meaning = meanings_[span.name];
      if (span.thread == main_ && meaning.kind != Kind::kNone) spans_.push_back({&span, meaning});
    }
    std::stable_sort(spans_.begin(), spans_.end(), [](const MainSpan& a, const MainSpan& b) {
      if (a.span->begin_ns != b.span->begin_ns) return a.span->begin_ns < b.span->begin_ns;
      return a.span->end_ns > b.span->end_ns;  // the outer one first
    });
    for (const MainSpan& one : spans_) {
      if (one.meaning.kind == Kind::kEvalForward) eval_forwards_.push_back(one.span->begin_ns);
      if (one.meaning.kind == Kind::kForward) training_marks_.push_back(one.span->begin_ns);
      if (one.meaning.kind == Kind::kBackward) training_marks_.push_back(one.span->begin_ns);
      if (one.meaning.kind == Kind::kOptimizer) training_marks_.push_back(one.span->begin_ns);
    }
  }

  Timeline build() {
    find_iterations();
    find_evaluations();
    for (Iteration& one : timeline_.iterations) one.training = !inside(timeline_.evaluations, one.begin_ns);
    find_window();
    find_optimizer_calls();
    cut_segments();
    return std::move(timeline_);
  }

 private:
  static bool any_in(const std::vector<std::uint64_t>& times, const Interval& window) {
    const auto at = std::lower_bound(times.begin(), times.end(), window.begin_ns);
    return at != times.end() && *at < window.end_ns;
  }

  // Loaders may nest (a validation pass in the middle of an epoch), so the open ones are a stack.
  void find_iterations();
  void find_evaluations();
  void find_window();
  void find_optimizer_calls();
  void cut_segments();
  std::uint64_t last_end_inside(const Interval& window) const;

  const RunData& data_;
  std::vector<Meaning> meanings_;
  std::uint32_t main_ = 0;
  std::vector<MainSpan> spans_;  // of the main thread, by begin
  std::vector<std::uint64_t> eval_forwards_;
  std::vector<std::uint64_t> training_marks_;  // forward in training mode, backward, optimizer
  Timeline timeline_;
};

void Builder::find_iterations() {
  struct Mark {
    std::uint64_t time_ns;
    enum { kEnd, kStart, kEpoch, kWait } what;  // the order of marks at the same time
    const Span* span;
  };
  std::vector<Mark> marks;
  for (const MainSpan& one : spans_) {
    if (one.meaning.kind == Kind::kStart) marks.push_back({one.span->begin_ns, Mark::kStart, one.span});
    if (one.meaning.kind == Kind::kWait) marks.push_back({one.span->begin_ns, Mark::kWait, one.span});
  }
  for (const Instant& instant : data_.instants) {
    if (instant.thread != main_) continue;
    if (data_.names[instant.name] == "data.epoch") marks.push_back({instant.time_ns, Mark::kEpoch, nullptr});
    if (data_.names[instant.name] == "data.end") marks.push_back({instant.time_ns, Mark::kEnd, nullptr});
  }
  std::sort(marks.begin(), marks.end(),
            [](const Mark& a, const Mark& b) { return std::tie(a.time_ns, a.what) < std::tie(b.time_ns, b.what); });

  auto& all = timeline_.iterations;
  struct Open {
    std::size_t index;
    bool started;
    bool epoch_seen;
    bool waited;
  };
  std::vector<Open> open;
  const auto begin_one = [&](const Mark& mark) {
    open.push_back({all.size(), mark.what == Mark::kStart, mark.what == Mark::kEpoch, false});
    all.push_back({mark.time_ns, mark.time_ns, 0, {}, false});
  };
  for (const Mark& mark : marks) {
    switch (mark.what) {
      case Mark::kStart:
        if (open.empty() || open.back().started || open.back().waited) begin_one(mark);
        open.back().started = true;
        break;
      case Mark::kEpoch:
        if (open.empty() || open.back().epoch_seen || open.back().waited) begin_one(mark);
        open.back().epoch_seen = true;
        break;
      case Mark::kWait: {
        if (open.empty()) begin_one(mark);
        open.back().waited = true;
        Iteration& one = all[open.back().index];
        one.end_ns = std::max(one.end_ns, mark.span->end_ns);
        if (mark.span->value == 0 || mark.span->open) break;
        if (one.batches.empty()) one.first_batch_ns = mark.span->end_ns;
        one.batches.push_back(mark.span);
        break;
      }
      case Mark::kEnd:
        if (open.empty()) break;
        all[open.back().index].end_ns = std::max(all[open.back().index].end_ns, mark.time_ns);
        open.pop_back();
        break;
    }
  }
}

// The end of the last span that begins in `window` and is no eval or gc: where an evaluation that was never closed by
// Module.train() really ended.
std::uint64_t Builder::last_end_inside(const Interval& window) const {
  std::uint64_t last = window.begin_ns;
  for (auto at = std::lower_bound(spans_.begin(), spans_.end(), window.begin_ns,
                                  [](const MainSpan&one, std::uint64_t t) { return one.span->begin_ns < t; });
       at != spans_.end() && at->span->begin_ns < window.end_ns; ++at) {
    if (trains(at->meaning.kind)) last = std::max(last, std::min(at->span->end_ns, window.end_ns));
  }
  return last;
}

// An evaluation is an `eval` span in which nothing trains, a pass over a loader with forwards in eval mode and no
// training, or a forward in eval mode by itself. A model that is trained while in eval mode is training.
void Builder::find_evaluations() {
  std::vector<Interval> found;
  std::vector<Interval> not_evaluation;
  for (const MainSpan& one : spans_) {
    if (one.meaning.kind != Kind::kEval) continue;
    Interval window{one.span->begin_ns, one.span->end_ns};
    if (any_in(training_marks_, window)) {
      not_evaluation.push_back(window);
      continue;
    }
    window.end_ns = one.span->open ? last_end_inside(window) : window.end_ns;
    if (window.end_ns > window.begin_ns) found.push_back(window);
  }
  for (const Iteration& one : timeline_.iterations) {
    const Interval window{one.begin_ns, one.end_ns};
    if (any_in(eval_forwards_, window) && !any_in(training_marks_, window)) found.push_back(window);
  }
  for (const MainSpan& one : spans_) {
    if (one.meaning.kind != Kind::kEvalForward || inside(not_evaluation, one.span->begin_ns)) continue;
    found.push_back({one.span->begin_ns, one.span->end_ns});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  for (const Interval& one : found) {
    auto& merged = timeline_.evaluations;
    if (!merged.empty() && one.begin_ns <= merged.back().end_ns) {
      merged.back().end_ns = std::max(merged.back().end_ns, one.end_ns);
    } else {
      merged.push_back(one);
    }
  }
}

void Builder::find_window() {
  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  for (const MainSpan& one : spans_) {
    const bool marks_begin = trains(one.meaning.kind);
    if (marks_begin) begin = std::min(begin, one.span->begin_ns);
    if (marks_begin || one.meaning.phase == Phase::kCheckpoint) end = std::max(end, one.span->end_ns);
  }
  for (const Iteration& one : timeline_.iterations) {
    begin = std::min(begin, one.begin_ns);
    end = std::max(end, one.end_ns);
  }
  for (const Interval& one : timeline_.evaluations) end = std::max(end, one.end_ns);
  if (begin < end) timeline_.training = {begin, end};
}

void Builder::find_optimizer_calls() {
  for (const MainSpan& one : spans_) {
    if (one.meaning.kind != Kind::kOptimizer || one.span->open) continue;
    auto& calls = timeline_.optimizer_calls;
    if (!calls.empty() && one.span->begin_ns < calls.back().end_ns) continue;  // a wrapped optimizer's inner call
    calls.push_back({one.span->begin_ns, one.span->end_ns});
  }
}

// Sweeps over all begins and ends; between two of them the innermost open span gives the phase, and within an
// evaluation all but a checkpoint is evaluation. Spans that do not nest (events were lost) still give one phase each.
void Builder::cut_segments() {
  struct Edge {
    std::uint64_t time_ns;
    int change;         // −1 before +1 at the same time
    std::size_t index;  // into spans_, or kEvaluation
  };
  constexpr std::size_t kEvaluation = SIZE_MAX;
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (spans_[i].meaning.kind == Kind::kEval || spans_[i].span->end_ns <= spans_[i].span->begin_ns) continue;
    edges.push_back({spans_[i].span->begin_ns, 1, i});
    edges.push_back({spans_[i].span->end_ns, -1, i});
  }
  for (const Interval& one : timeline_.evaluations) {
    edges.push_back({one.begin_ns, 1, kEvaluation});
    edges.push_back({one.end_ns, -1, kEvaluation});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.time_ns, a.change, a.index) < std::tie(b.time_ns, b.change, b.index);
  });

  std::set<std::size_t> open;  // spans_ is sorted by begin, so the largest index is the innermost
  int evaluating = 0;
  const auto phase_now = [&]() {
    const Phase inner = open.empty() ? Phase::kOther : spans_[*open.rbegin()].meaning.phase;
    return evaluating > 0 && inner != Phase::kCheckpoint ? Phase::kEvaluation : inner;
  };
  const Interval window = timeline_.training;
  auto& out = timeline_.segments;
  std::uint64_t at = window.begin_ns;
  const auto fill_to = [&](std::uint64_t time_ns) {
    const std::uint64_t to = std::min(time_ns, window.end_ns);
    if (to <= at) return;
    const Phase phase = phase_now();
    if (!out.empty() && out.back().phase == phase) {
      out.back().end_ns = to;
    } else {
      out.push_back({at, to, phase});
    }
    at = to;
  };
  for (const Edge& edge : edges) {
    fill_to(edge.time_ns);
    if (edge.index == kEvaluation) {
      evaluating += edge.change;
    } else if (edge.change > 0) {
      open.insert(edge.index);
    } else {
      open.erase(edge.index);
    }
  }
  fill_to(window.end_ns);
}

}  // namespace

bool inside(const std::vector<Interval>& intervals, std::uint64_t time_ns) {
  auto after = std::upper_bound(intervals.begin(), intervals.end(), time_ns,
                                [](std::uint64_t t, const Interval& one) { return t < one.begin_ns; });
  return after != intervals.begin() && time_ns < std::prev(after)->end_ns;
}

void add_overlap(const std::vector<Segment>& segments, const Interval& window, std::size_t& at, PhaseTimes& into) {
  while (at < segments.size() && segments[at].end_ns <= window.begin_ns) ++at;
  for (std::size_t i = at; i < segments.size() && segments[i].begin_ns < window.end_ns; ++i) {
    const std::uint64_t begin = std::max(segments[i].begin_ns, window.begin_ns);
    const std::uint64_t end = std::min(segments[i].end_ns, window.end_ns);
    if (end > begin) into[segments[i].phase] += static_cast<double>(end - begin) / 1e9;
  }
}

Timeline make_timeline(const RunData& data) { return Builder(data).build(); }

}  // namespace stoker::watch
