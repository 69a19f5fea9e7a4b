#include "stoker/feed/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "feed/loader/permutation.h"
#include "feed/loader/random.h"

namespace stoker::feed {
namespace {

// Known answers of Philox 4x32-10, from the tables published with the algorithm.
TEST(RandomTest, PhiloxGivesItsPublishedNumbers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, PurposesPositionsAndEpochsDoNotShareNumbers) {
  std::set<std::uint32_t> seen;
  for (const std::uint64_t epoch : {0, 1})
    for (const std::uint64_t position : {0, 1})
      for (const Purpose purpose : {Purpose::kTransform, Purpose::kSubstitute, Purpose::kWeighted})
        seen.insert(SampleRandom(7, epoch, position, purpose).next());
  EXPECT_EQ(seen.size(), 12U);
}

TEST(PermutationTest, EveryValueComesOnce) {
  for (const std::uint64_t n : {1, 2, 3, 31, 1000, 1024, 5000}) {
    const Permutation permutation(n, 42, 3);
    std::vector<bool> seen(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t value = permutation(i);
      ASSERT_LT(value, n);
      EXPECT_FALSE(seen[value]);
      seen[value] = true;
    }
  }
}

// Over many epochs each value comes to each position equally often, and each ordered pair of values to the first two.
// Chi-square with k degrees lies beyond k + 5·sqrt(2k) about once in a million.
TEST(PermutationTest, PlacesAndPairsAreEven) {
  constexpr std::uint64_t n = 6;
  constexpr int epochs = 5000;
  double places[n][n] = {};
  double pairs[n][n] = {};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const Permutation permutation(n, 5, static_cast<std::uint64_t>(epoch));
    for (std::uint64_t i = 0; i < n; ++i) ++places[i][permutation(i)];
    ++pairs[permutation(0)][permutation(1)];
  }
  double place_chi = 0;
  double pair_chi = 0;
  for (std::uint64_t a = 0; a < n; ++a)
    for (std::uint64_t b = 0; b < n; ++b) {
      const double place = epochs / double{n};
      place_chi += (places[a][b] - place) * (places[a][b] - place) / place;
      if (a == b) continue;
      const double pair = epochs / double{n * (n - 1)};
      pair_chi += (pairs[a][b] - pair) * (pairs[a][b] - pair) / pair;
    }
  EXPECT_LT(place_chi, 25 + 5 * std::sqrt(50));
  EXPECT_LT(pair_chi, 29 + 5 * std::sqrt(58));
}

Order make(OrderOptions options) {
  auto order = Order::create(std::move(options));
  STOKER_CHECK(order.ok(), "order");
  return *std::move(order);
}

std::vector<std::uint64_t> all(const Order& order, std::uint64_t epoch) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < order.length(); ++i) out.push_back(order.at(epoch, i));
  return out;
}

TEST(OrderTest, EpochsAndSeedsShuffleDifferently) {
  const Order order = make({.kind = OrderKind::kShuffle, .seed = 1, .population = 100});
  const Order other = make({.kind = OrderKind::kShuffle, .seed = 2, .population = 100});
  EXPECT_NE(all(order, 0), all(order, 1));
  EXPECT_NE(all(order, 0), all(other, 0));
  EXPECT_EQ(all(order, 5), all(order, 5));
}

TEST(OrderTest, ASubsetIsShuffledWithinItself) {
  const auto items = std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{9, 3, 5});
  auto drawn = all(make({.kind = OrderKind::kShuffle, .population = 10, .items = items}), 0);
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(drawn, (std::vector<std::uint64_t>{3, 5, 9}));
  EXPECT_EQ(all(make({.population = 10, .items = items}), 7), (std::vector<std::uint64_t>{9, 3, 5}));
}

TEST(OrderTest, WeightsAreKeptAndZeroIsNeverDrawn) {
  const auto weights = std::make_shared<const std::vector<double>>(std::vector<double>{1, 0, 3, 0});
  const Order order =
      make({.kind = OrderKind::kWeighted, .seed = 3, .population = 4, .weights = weights, .draws = 40000});
  std::vector<int> counts(4);
  for (const std::uint64_t sample : all(order, 0)) ++counts[sample];
  EXPECT_EQ(counts[1] + counts[3], 0);
  EXPECT_NEAR(counts[2], 30000, 5 * std::sqrt(40000 * 0.75 * 0.25));
}

TEST(OrderTest, WhatDoesNotFitIsRefused) {
  const auto items = std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{4});
  EXPECT_NE(Order::create({.population = 4, .items = items}).error().message.find("sample 4"), std::string::npos);
  EXPECT_EQ(Order::create({}).code(), ErrorCode::kBadInput);
  const auto weights = [](std::vector<double> values) {
    return std::make_shared<const std::vector<double>>(std::move(values));
  };
  for (const auto& bad : {weights({1}), weights({1, -1}), weights({0, 0}), weights({1, std::nan("")})})
    EXPECT_EQ(Order::create({.kind = OrderKind::kWeighted, .population = 2, .weights = bad}).code(),
              ErrorCode::kBadInput);
}

Shard shard(std::uint64_t length, std::uint64_t start, ShardOptions options) {
  auto made = Shard::create(length, start, options);
  STOKER_CHECK(made.ok(), "shard");
  return *made;
}

std::vector<std::uint64_t> positions(const Shard& s) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t b = 0; b < s.batches(); ++b)
    for (std::uint64_t k = 0; k < s.batch_length(b); ++k) out.push_back(s.position(b, k));
  return out;
}

TEST(ShardTest, RanksTakeTurnsAndGetTheSameNumberOfBatches) {
  EXPECT_EQ(positions(shard(7, 0, {2, 0, 2})), (std::vector<std::uint64_t>{0, 2, 4, 6}));
  EXPECT_EQ(positions(shard(7, 0, {2, 1, 2})), (std::vector<std::uint64_t>{1, 3, 5, 7}));  // 7 begins again at 0
  EXPECT_EQ(positions(shard(7, 0, {2, 0, 2, true})), (std::vector<std::uint64_t>{0, 2}));
  EXPECT_EQ(positions(shard(7, 0, {2, 1, 2, true})), (std::vector<std::uint64_t>{1, 3}));
  // Fewer samples than ranks × batch size still give every rank a batch.
  for (const std::uint64_t rank : {0, 1, 2, 3}) EXPECT_EQ(shard(10, 0, {8, rank, 4}).batches(), 1U);
}

// What was drawn is a beginning of the order, so another batch size and world size can go on from it.
TEST(ShardTest, AnotherWorldGoesOnWhereTheFirstStopped) {
  const Shard before = shard(20, 0, {2, 0, 2});
  const std::uint64_t drawn = before.drawn_after(3);
  EXPECT_EQ(drawn, 12U);
  std::vector<std::uint64_t> rest;
  for (const std::uint64_t rank : {0, 1, 2, 3})
    for (const std::uint64_t position : positions(shard(20, drawn, {1, rank, 4}))) rest.push_back(position);
  std::sort(rest.begin(), rest.end());
  EXPECT_EQ(rest, (std::vector<std::uint64_t>{12, 13, 14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(before.drawn_after(before.batches()), 20U);
  EXPECT_EQ(shard(20, 20, {2, 0, 2}).batches(), 0U);
}

TEST(ShardTest, ImpossibleSharesAreRefused) {
  EXPECT_EQ(Shard::create(5, 0, {0, 0, 1}).code(), ErrorCode::kBadInput);
  EXPECT_EQ(Shard::create(5, 0, {1, 2, 2}).code(), ErrorCode::kBadInput);
  EXPECT_EQ(Shard::create(5, 6, {1, 0, 1}).code(), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace stoker::feed
