// The flag table: what each verb takes. It makes both the parser and --help.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "printer.h"

namespace CLI {
class App;
}

namespace stoker::cli {

// The flags of one verb. What is parsed lands in the variables that were named, which must outlive the parse; a verb
// keeps them in a shared arguments struct that its action captures.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  // Words without a dash, in the order in which they are declared.
  Flags& word(const std::string& name, std::string& into, const std::string& help, bool required = true);
  Flags& words(const std::string& name, std::vector<std::string>& into, const std::string& help, bool required = true);
  // "--name" or "-n,--name", present or absent.
  Flags& flag(const std::string& name, bool& into, const std::string& help);
  // With a value; the variable's present value is shown as the default. An empty string shows none.
  Flags& option(const std::string& name, std::string& into, const std::string& help);
  Flags& option(const std::string& name, std::int64_t& into, const std::string& help);
  Flags& option(const std::string& name, double& into, const std::string& help);
  // May be given several times.
  Flags& option(const std::string& name, std::vector<std::string>& into, const std::string& help);

 private:
  CLI::App& app_;
};

// All verbs. Each gets --json by itself.
class CommandLine {
 public:
  CommandLine();
  ~CommandLine();

  // `name` may have two words, "ckpt list"; the first then is a group, described by add_group.
  Flags verb(const std::string& name, const std::string& help, std::function<Exit(Printer&)> action);
  void add_group(const std::string& name, const std::string& help);

  // Parses and runs. Never exits.
  Exit run(int argc, const char* const* argv);

 private:
  CLI::App& group(const std::string& name);
  std::string suggestion(int argc, const char* const* argv) const;

  std::unique_ptr<CLI::App> app_;
  std::function<Exit(Printer&)> chosen_;
  bool json_ = false;
};

}  // namespace stoker::cli
