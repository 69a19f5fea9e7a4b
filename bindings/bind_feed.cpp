#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include "convert.h"
#include "stoker/feed/loader.h"

namespace stoker::python {
namespace {

using feed::Batch;
using feed::FileIndex;
using feed::Loader;
using feed::Next;
using feed::Order;

// How long a wait for a batch lasts before Python may look at its signals: about one decode.
constexpr std::chrono::milliseconds kSlice{20};

// File names as Python has them: bytes that are not UTF-8 become surrogates, as in os.fsdecode().
nb::object path_object(const std::string& path) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}
std::string bytes_of(nb::handle path) {
  const auto bytes = nb::cast<nb::bytes>(path);
  return {bytes.c_str(), bytes.size()};
}

// --- transforms and options, which arrive as plain dicts ---

int int_of(const Json& value) { return static_cast<int>(value.as_int()); }

feed::PixelOptions pixels_of(const Json& options) {
  feed::PixelOptions pixels;
  pixels.type = options["dtype"].as_string() == "uint8" ? feed::PixelType::kUint8Nhwc : feed::PixelType::kFloat32Nchw;
  pixels.unit_scale =
      options["unit_scale"].as_string() == "divide" ? feed::UnitScale::kDivide : feed::UnitScale::kMultiply;
  for (std::size_t c = 0; c < 3; ++c) {
    if (options["mean"].items().size() == 3)
      pixels.mean[c] = static_cast<float>(options["mean"].items()[c].as_double());
    if (options["std"].items().size() == 3)
      pixels.stddev[c] = static_cast<float>(options["std"].items()[c].as_double());
  }
  return pixels;
}

feed::LoaderOptions options_of(const Json& options) {
  feed::LoaderOptions made;
  made.transform = unwrap(feed::TransformPlan::compile(unwrap(feed::transform_steps(options["transform"]))));
  made.pixels = pixels_of(options);
  made.decoder.exif = options["exif"].as_string() == "apply" ? feed::ExifPolicy::kApply : feed::ExifPolicy::kIgnore;
  if (options["fast"].as_bool()) made.decoder.fidelity = feed::Fidelity::kFast;
  made.decoder.arithmetic =
      options["arithmetic"].as_string() == "pillow12" ? feed::Arithmetic::kPillow12 : feed::Arithmetic::kPillow13;
  const std::string& on_error = options["on_error"].as_string();
  if (on_error == "skip") made.on_error = feed::OnError::kSkip;
  if (on_error == "substitute") made.on_error = feed::OnError::kSubstitute;
  made.threads = int_of(options["threads"]);
  made.ahead = int_of(options["ahead"]);
  return made;
}

nb::dict geometry_object(nb::handle options, std::uint64_t seed, std::uint64_t epoch, std::uint64_t position, int width,
                         int height) {
  const feed::Geometry g =
      options_of(to_json(options)).transform.draw_at(width, height, seed, epoch, position).geometry;
  nb::dict out;
  out["crop"] = nb::make_tuple(g.crop.left, g.crop.top, g.crop.width, g.crop.height);
  out["size"] = nb::make_tuple(g.width, g.height);
  out["window"] = nb::make_tuple(g.window.left, g.window.top, g.window.width, g.window.height);
  out["mirror"] = g.mirror;
  return out;
}

// --- batches ---

// The array as `framework` ("torch", "numpy" or "") knows it; `owner` keeps its memory.
nb::object array_object(void* data, const std::vector<std::size_t>& shape, nb::dlpack::dtype type,
                        const nb::object& owner, const std::string& framework) {
  const nb::ndarray<> array(data, shape.size(), shape.data(), owner, nullptr, type, nb::device::cpu::value);
  if (framework == "torch") return nb::cast(nb::ndarray<nb::pytorch>(array));
  if (framework == "numpy") return nb::cast(nb::ndarray<nb::numpy>(array));
  return nb::cast(array);
}

// (images, labels, batches of the iteration that are done with it)
nb::tuple batch_object(const Next& given, const std::string& framework) {
  const Batch& batch = given.batch;
  const auto n = batch.size();
  const auto height = static_cast<std::size_t>(batch.height());
  const auto width = static_cast<std::size_t>(batch.width());
  const bool is_float = batch.type() == feed::PixelType::kFloat32Nchw;
  const nb::capsule owner(new Batch(batch), [](void* held) noexcept { delete static_cast<Batch*>(held); });
  const auto shape =
      is_float ? std::vector<std::size_t>{n, 3, height, width} : std::vector<std::size_t>{n, height, width, 3};
  return nb::make_tuple(
      array_object(batch.images(), shape, is_float ? nb::dtype<float>() : nb::dtype<std::uint8_t>(), owner, framework),
      array_object(batch.labels(), {n}, nb::dtype<std::int64_t>(), owner, framework), given.batches_done);
}

// Waits with the GIL released, a slice at a time, so that Ctrl-C is answered.
nb::object next_batch(Loader& loader, const std::string& framework) {
  while (true) {
    auto next = [&] {
      const nb::gil_scoped_release released;
      return loader.next(kSlice);
    }();
    const Next given = unwrap(std::move(next));
    if (given.state == Next::State::kEnd) return nb::none();
    if (given.state == Next::State::kBatch) return batch_object(given, framework);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

nb::dict stats_object(const Loader& loader) {
  const feed::LoaderStats stats = loader.stats();
  const auto seconds = [](std::chrono::nanoseconds t) { return std::chrono::duration<double>(t).count(); };
  nb::dict out;
  out["threads"] = stats.threads;
  out["samples"] = stats.samples;
  out["batches"] = stats.batches;
  out["bytes_read"] = stats.bytes_read;
  out["read_s"] = seconds(stats.read);
  out["decode_s"] = seconds(stats.decode);
  out["wait_s"] = seconds(stats.wait);
  out["slots"] = stats.slots;
  out["bad"] = stats.bad;
  nb::list files;
  for (const feed::BadFile& file : stats.bad_files) {
    nb::dict entry;
    entry["path"] = file.path;
    entry["why"] = file.why;
    entry["times"] = file.times;
    files.append(entry);
  }
  out["bad_files"] = files;
  return out;
}

// --- classes ---

std::shared_ptr<const FileIndex> index_from_list(const nb::list& samples, std::vector<std::string> classes) {
  std::vector<std::pair<std::string, std::int64_t>> made;
  made.reserve(nb::len(samples));
  for (const nb::handle sample : samples) {
    const auto pair = nb::cast<nb::tuple>(sample);
    made.emplace_back(bytes_of(pair[0]), nb::cast<std::int64_t>(pair[1]));
  }
  return unwrap(FileIndex::from_list(made, std::move(classes)));
}

nb::dict notes_object(const FileIndex& index) {
  const feed::FolderNotes& notes = index.notes();
  const auto names = [](const std::vector<std::string>& paths) {
    nb::list list;
    for (const std::string& path : paths) list.append(path_object(path));
    return list;
  };
  nb::dict out;
  out["hidden"] = names(notes.hidden);
  out["empty"] = names(notes.empty);
  out["looping"] = names(notes.looping);
  out["other_files"] = notes.other_files;
  out["other_names"] = names(notes.other_names);
  return out;
}

void bind_index(nb::module_& m) {
  nb::class_<FileIndex>(m, "_FileIndex")
      .def_static(
          "open_folder",
          [](const nb::bytes& path, bool allow_empty_classes) {
            const std::filesystem::path root(bytes_of(path));
            const nb::gil_scoped_release released;
            return std::const_pointer_cast<FileIndex>(unwrap(FileIndex::open_folder(root, {allow_empty_classes})));
          })
      .def_static("from_list",
                  [](const nb::list& samples, std::vector<std::string> classes) {
                    return std::const_pointer_cast<FileIndex>(index_from_list(samples, std::move(classes)));
                  })
      .def("__len__", &FileIndex::size)
      .def("path", [](const FileIndex& self, std::size_t i) { return path_object(self.path(i)); })
      .def("label", &FileIndex::label)
      .def("labels",
           [](const FileIndex& self) {
             std::vector<std::int64_t> labels(self.size());
             for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = self.label(i);
             return labels;
           })
      .def_prop_ro("classes",
                   [](const FileIndex& self) {
                     nb::list names;
                     for (const std::string& name : self.classes()) names.append(path_object(name));
                     return names;
                   })
      .def("notes", &notes_object)
      .def_prop_ro("memory_bytes", &FileIndex::memory_bytes);
}

Order make_order(const std::string& kind, std::uint64_t seed, std::uint64_t population,
                 std::optional<std::vector<std::uint64_t>> items, std::optional<std::vector<double>> weights,
                 std::uint64_t draws) {
  feed::OrderOptions options;
  if (kind == "shuffle") options.kind = feed::OrderKind::kShuffle;
  if (kind == "weighted") options.kind = feed::OrderKind::kWeighted;
  options.seed = seed;
  options.population = population;
  if (items) options.items = std::make_shared<const std::vector<std::uint64_t>>(*std::move(items));
  if (weights) options.weights = std::make_shared<const std::vector<double>>(*std::move(weights));
  options.draws = draws;
  return unwrap(Order::create(std::move(options)));
}

void bind_loader(nb::module_& m) {
  nb::class_<Order>(m, "_Order")
      .def_static("create", &make_order, nb::arg("kind"), nb::arg("seed"), nb::arg("population"),
                  nb::arg("items").none(), nb::arg("weights").none(), nb::arg("draws"))
      .def("__len__", &Order::length)
      .def("at", &Order::at, nb::arg("epoch"), nb::arg("position"));

  nb::class_<Loader>(m, "_Loader")
      .def_static("create",
                  [](std::shared_ptr<FileIndex> index, nb::handle options) {
                    auto made = options_of(to_json(options));
                    const nb::gil_scoped_release released;
                    return unwrap(Loader::create(std::move(index), std::move(made)));
                  })
      .def("start",
           [](Loader& self, const Order& order, std::uint64_t epoch, std::uint64_t start, std::uint64_t batch_size,
              std::uint64_t rank, std::uint64_t world_size, bool drop_last) {
             // A copy (lists are shared), not a reference to the Python object: a loader thread may be the last to let
             // go of it, and must not need the GIL for that while the loader's end waits for the thread.
             unwrap(self.start(
                 {std::make_shared<const Order>(order), epoch, start, {batch_size, rank, world_size, drop_last}}));
           })
      .def("next", &next_batch, nb::arg("framework"))
      .def("stop", &Loader::stop, NoGil())
      .def("stats", &stats_object)
      .def_prop_ro("size", &Loader::size);

  // What the transform would do to one picture, for tests and accelerate(verify=): {crop, size, window, mirror}.
  m.def("_draw_geometry", &geometry_object, nb::arg("options"), nb::arg("seed"), nb::arg("epoch"), nb::arg("position"),
        nb::arg("width"), nb::arg("height"));
  m.def("_shard_batches", [](std::uint64_t length, std::uint64_t start, std::uint64_t batch_size, std::uint64_t rank,
                             std::uint64_t world_size, bool drop_last) {
    return unwrap(feed::Shard::create(length, start, {batch_size, rank, world_size, drop_last})).batches();
  });
  m.def("_shard_drawn", [](std::uint64_t length, std::uint64_t start, std::uint64_t batch_size, std::uint64_t rank,
                           std::uint64_t world_size, bool drop_last, std::uint64_t batches) {
    return unwrap(feed::Shard::create(length, start, {batch_size, rank, world_size, drop_last})).drawn_after(batches);
  });
}

}  // namespace

void bind_feed(nb::module_& m) {
  bind_index(m);
  bind_loader(m);
}

}  // namespace stoker::python
