#include <algorithm>

#include "stoker/watch/verdict.h"

namespace stoker::watch {
namespace {

bool gpu_was_busy(const RunData& data) {
  for (const Counter& counter : data.counters) {
    if (!counter.name.starts_with("gpu.") || !counter.name.ends_with(".busy")) continue;
    if (std::any_of(counter.samples.begin(), counter.samples.end(), [](const Sample& s) { return s.value > 0.02; }))
      return true;
  }
  return false;
}

Signal<bool> accelerable(const Json& loader) {
  if (loader["accelerable"].is_bool()) return loader["accelerable"].as_bool();
  const std::string& why = loader["why"].as_string();
  return Signal<bool>::unavailable(why.empty() ? "it was not recorded" : why);
}

}  // namespace

const Json* training_loader(const Json& run) {
  const Json* chosen = nullptr;
  for (const Json& one : run["loaders"].items()) {
    if (chosen == nullptr || one["samples"].as_double() > (*chosen)["samples"].as_double()) chosen = &one;
  }
  return chosen;
}

VerdictInputs inputs_from(const RunData& data) {
  VerdictInputs inputs;
  inputs.gpu = gpu_was_busy(data);
  inputs.torch_threads = static_cast<int>(data.run["python"]["torch_threads"].as_int());
  if (const Json& model = data.run["python"]["model"]; model["channels_last"].is_bool()) {
    inputs.channels_last = model["channels_last"].as_bool();
    inputs.convolutions = static_cast<int>(model["convolutions"].as_int());
  }
  inputs.accelerated = data.run["accelerate"]["applied"].as_bool();
  if (const Json* loader = training_loader(data.run)) {
    inputs.accelerable = accelerable(*loader);
    if (inputs.accelerable && !*inputs.accelerable) inputs.not_known = (*loader)["why"].as_string();
    if ((*loader)["num_workers"].is_int()) inputs.num_workers = static_cast<int>((*loader)["num_workers"].as_int());
    const std::string& kind = (*loader)["loader"].as_string();
    inputs.accelerated = inputs.accelerated || kind == "AcceleratedLoader" || kind == "ImageLoader";
  }
  return inputs;
}

}  // namespace stoker::watch
