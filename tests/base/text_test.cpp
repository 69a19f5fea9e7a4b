#include "stoker/base/text.h"

#include <gtest/gtest.h>

#include "stoker/base/hash.h"

namespace stoker {
namespace {

TEST(NearestMatch, FindsASlipAndNothingFarOff) {
  EXPECT_EQ(nearest_match("docter", {"doctor", "run", "report"}), "doctor");
  EXPECT_EQ(nearest_match("--jsn", {"--json", "--help"}), "--json");
  EXPECT_EQ(nearest_match("xyzzy", {"doctor", "run"}), "");
}

TEST(Printable, KeepsUtf8AndEscapesTheRest) {
  EXPECT_EQ(printable("Blätter 🌿"), "Blätter 🌿");
  EXPECT_EQ(printable("a\x1b[31mb\n"), "a\\x1b[31mb\\x0a");
  EXPECT_EQ(printable("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

TEST(NaturalLess, ComparesNumbersAsNumbers) {
  EXPECT_TRUE(natural_less("step-9", "step-10"));
  EXPECT_FALSE(natural_less("step-10", "step-9"));
  EXPECT_TRUE(natural_less("a", "b"));
  EXPECT_TRUE(natural_less("01", "1"));
}

TEST(ShellQuote, LeavesPlainWordsAndQuotesOthers) {
  EXPECT_EQ(shell_quote("train.py"), "train.py");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quote(""), "''");
}

// The values that xxhsum -H128 and every other XXH3 implementation print.
TEST(Hash128, MatchesTheReference) {
  EXPECT_EQ(hash128("").hex(), "99aa06d3014798d86001c324468d497f");
  Hasher hasher;
  hasher.update(std::as_bytes(std::span("sto", 3)));
  hasher.update(std::as_bytes(std::span("ker", 3)));
  EXPECT_EQ(hasher.digest(), hash128("stoker"));
}

}  // namespace
}  // namespace stoker
