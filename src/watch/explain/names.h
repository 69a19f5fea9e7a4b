// What was read from a log beside a cause's own patterns: numbers, and sentences made of them. Private to the room.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::watch {

struct Names {
  std::map<std::string, std::string> values;
  std::map<std::string, std::size_t> places;  // byte offset in the log, for names that a cause may rest on

  bool has(const std::string& name) const { return values.count(name) != 0; }
  void set(const std::string& name, std::string value, std::optional<std::size_t> place = std::nullopt) {
    values[name] = std::move(value);
    if (place) places[name] = *place;
  }
};

// Each reader looks for its own kind of message and sets names where it finds one.
void read_gpu_memory(std::string_view log, Names& names);        // oom, oom_…
void read_gpu_architecture(std::string_view log, Names& names);  // gpu_too_old, gpu_too_new
void read_shapes(std::string_view log, Names& names);            // channels_differ, sizes_differ, shape_mismatch
void read_numbers(std::string_view log, Names& names);           // the small ones

}  // namespace stoker::watch
