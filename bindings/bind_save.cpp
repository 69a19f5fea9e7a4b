#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <map>
#include <mutex>

#include "convert.h"
#include "stoker/save/store.h"

namespace stoker::python {
namespace {

using save::Store;

// name, dtype, shape, address, bytes: the caller keeps the owner alive until save() returns.
using Tensor = std::tuple<std::string, std::string, std::vector<std::uint64_t>, std::uintptr_t, std::size_t>;

// A Store and what it had to say. Its notices may come from its own thread, which must not wait for the GIL.
struct BoundStore {
  struct Notices {
    std::mutex mutex;
    std::vector<std::pair<bool, std::string>> lines;  // warning?, text
  };
  std::shared_ptr<Notices> notices = std::make_shared<Notices>();
  std::unique_ptr<Store> store;
};

// From a dict with the names that the manifest uses; Python's Keep has checked the values.
save::Keep keep_of(const Json& keep) {
  save::Keep made;
  made.last = static_cast<std::size_t>(keep["last"].as_int());
  made.every_steps = keep["every_steps"].as_int();
  made.every = Nanoseconds(keep["every_ns"].as_int());
  made.every_epochs = keep["every_epochs"].as_int();
  made.best_metric = keep["best_metric"].as_string();
  made.better = keep["better"].as_string() == "lower" ? save::Better::kLower : save::Better::kHigher;
  return made;
}

std::unique_ptr<BoundStore> open(const std::string& dir, bool read_only) {
  auto bound = std::make_unique<BoundStore>();
  Store::Options options;
  options.read_only = read_only;
  options.notice = [notices = bound->notices](Severity severity, const std::string& message) {
    const std::lock_guard lock(notices->mutex);
    notices->lines.emplace_back(severity == Severity::kWarning, message);
  };
  bound->store = unwrap(Store::open(dir, std::move(options)));
  return bound;
}

std::vector<std::pair<bool, std::string>> take_notices(BoundStore& self) {
  const std::lock_guard lock(self.notices->mutex);
  return std::exchange(self.notices->lines, {});
}

void save_tensors(BoundStore& self, save::Step step, std::vector<Tensor> tensors, std::string state,
                  std::map<std::string, double> metrics, std::string pin, bool exact) {
  std::vector<save::TensorView> views;
  views.reserve(tensors.size());
  for (auto& [name, dtype, shape, address, bytes] : tensors)
    views.push_back(
        {std::move(name), std::move(dtype), std::move(shape), {reinterpret_cast<const std::byte*>(address), bytes}});
  save::SaveOptions options{std::move(state), {metrics.begin(), metrics.end()}, std::move(pin), exact};
  unwrap(self.store->save(step, views, std::move(options)));
}

nb::dict info_dict(const save::CheckpointInfo& info) {
  nb::dict dict;
  dict["step"] = info.step;
  dict["pin"] = info.pin;
  dict["exact"] = info.exact;
  dict["path"] = info.path.string();
  dict["created_ns"] = info.created.count();
  dict["size_bytes"] = info.size_bytes;
  dict["tensor_count"] = info.tensor_count;
  nb::dict metrics;
  for (const auto& [name, value] : info.metrics) metrics[nb::str(name.c_str(), name.size())] = value;
  dict["metrics"] = metrics;
  return dict;
}

nb::list damage_list(const std::vector<save::Damage>& damaged) {
  nb::list list;
  for (const save::Damage& damage : damaged) {
    nb::dict dict;
    dict["step"] = damage.step;
    dict["path"] = damage.path.string();
    dict["why"] = damage.error.message;
    list.append(dict);
  }
  return list;
}

nb::dict list_checkpoints(const BoundStore& self) {
  const save::Listing listing = [&] {
    const nb::gil_scoped_release release;
    return unwrap(self.store->list());
  }();
  nb::dict dict;
  nb::list checkpoints;
  for (const auto& info : listing.checkpoints) checkpoints.append(info_dict(info));
  dict["checkpoints"] = checkpoints;
  dict["damaged"] = damage_list(listing.damaged);
  dict["latest"] = listing.latest;
  dict["best"] = listing.best;
  return dict;
}

nb::list verify(const BoundStore& self, std::optional<save::Step> step) {
  const auto damaged = [&] {
    const nb::gil_scoped_release release;
    return unwrap(self.store->verify(step));
  }();
  return damage_list(damaged);
}

// A memoryview of bytes over memory that it owns.
nb::object bytes_of(save::Buffer buffer) {
  auto* kept = new save::Buffer(std::move(buffer));
  const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<save::Buffer*>(pointer); });
  return nb::cast(nb::ndarray<nb::memview, std::uint8_t, nb::ndim<1>>(kept->data.get(), {kept->size_bytes}, owner));
}

nb::tuple load(const BoundStore& self, std::optional<save::Step> step, const std::string& pin) {
  save::Loaded loaded = [&] {
    const nb::gil_scoped_release release;
    return unwrap(self.store->load(step, pin));
  }();
  nb::list tensors;
  for (save::LoadedTensor& tensor : loaded.tensors)
    tensors.append(nb::make_tuple(tensor.name, tensor.dtype, nb::tuple(nb::cast(tensor.shape)),
                                  bytes_of(std::move(tensor.bytes))));
  return nb::make_tuple(info_dict(loaded.info), nb::str(loaded.state.c_str(), loaded.state.size()), tensors,
                        damage_list(loaded.skipped));
}

}  // namespace

void bind_save(nb::module_& m) {
  nb::class_<BoundStore>(m, "_Store")
      .def(nb::new_(&open), nb::arg("dir"), nb::arg("read_only"))
      .def("set_keep", [](BoundStore& self, nb::handle keep) { self.store->set_keep(keep_of(to_json(keep))); })
      .def("save", &save_tensors, NoGil())
      .def(
          "wait", [](BoundStore& self) { unwrap(self.store->wait()); }, NoGil())
      .def(
          "close", [](BoundStore& self) { unwrap(self.store->close()); }, NoGil())
      .def("take_notices", &take_notices)
      .def("list", &list_checkpoints)
      .def("verify", &verify, nb::arg("step").none())
      .def("load", &load, nb::arg("step").none(), nb::arg("pin"));
}

}  // namespace stoker::python
