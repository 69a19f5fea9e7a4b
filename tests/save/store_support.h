// States and stores that the store's tests share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "stoker/save/store.h"
#include "support/fake_fs.h"

namespace stoker::save::testing {

using stoker::testing::FakeFs;

inline const std::filesystem::path kDir = "/runs/leaf";

// A state of a big tensor that moves with every step, one that never does, an odd tail and an empty one.
class Sample {
 public:
  explicit Sample(Step step) {
    add("model.moves", "F32", 5000, static_cast<char>('a' + step % 20));
    add("model.frozen", "F32", 6000, 'z');
    add("model.odd", "U8", 17, static_cast<char>('A' + step % 20));
    add("model.empty", "BF16", 0, ' ');
  }
  const std::vector<TensorView>& views() const { return views_; }
  static SaveOptions options(Step step, Metrics metrics = {}) {
    return {"{\"step\":" + std::to_string(step) + "}", std::move(metrics), "", true};
  }

 private:
  void add(const std::string& name, const std::string& dtype, std::size_t count, char fill) {
    const std::size_t width = dtype == "F32" ? 4 : dtype == "BF16" ? 2 : 1;
    bytes_.push_back(std::make_unique<std::string>(count * width, fill));
    views_.push_back({name, dtype, {count}, std::as_bytes(std::span(*bytes_.back()))});
  }
  std::vector<std::unique_ptr<std::string>> bytes_;
  std::vector<TensorView> views_;
};

inline Status save_and_wait(Store& store, Step step, Metrics metrics = {}) {
  const Sample sample(step);
  STOKER_TRY(store.save(step, sample.views(), Sample::options(step, std::move(metrics))));
  return store.wait();
}

// True when what is loaded is what Sample(step) was, byte by byte.
inline ::testing::AssertionResult is_sample(const Loaded& loaded, Step step) {
  const Sample sample(step);
  if (loaded.info.step != step) return ::testing::AssertionFailure() << "step " << loaded.info.step;
  if (loaded.tensors.size() != sample.views().size()) return ::testing::AssertionFailure() << "another count";
  for (std::size_t i = 0; i < loaded.tensors.size(); ++i) {
    const auto& want = sample.views()[i].bytes;
    const auto& have = loaded.tensors[i].bytes;
    if (have.size_bytes != want.size() || !std::equal(want.begin(), want.end(), have.data.get()))
      return ::testing::AssertionFailure() << loaded.tensors[i].name << " differs";
  }
  if (loaded.state != Sample::options(step).state) return ::testing::AssertionFailure() << loaded.state;
  return ::testing::AssertionSuccess();
}

inline std::unique_ptr<Store> open_store(FileSystem& fs, Keep keep = {}, Notice notice = {}) {
  Store::Options options;
  options.keep = std::move(keep);
  options.files = &fs;
  options.threads = 2;
  options.notice = std::move(notice);
  auto store = Store::open(kDir, std::move(options));
  EXPECT_TRUE(store.ok()) << (store.ok() ? "" : store.error().message);
  return store.ok() ? *std::move(store) : nullptr;
}

inline std::vector<Step> steps(const Store& store) {
  std::vector<Step> all;
  const auto listing = store.list();
  if (!listing) return all;
  for (const CheckpointInfo& info : listing->checkpoints) all.push_back(info.step);
  return all;
}

}  // namespace stoker::save::testing
