#include "command_line.h"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "stoker/base/text.h"

namespace stoker::cli {
namespace {

std::vector<CLI::App*> all_verbs(const CLI::App& app) {
  std::vector<CLI::App*> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(const_cast<CLI::App*>(verb));
  }
  return verbs;
}

bool is_verb(const CLI::App& app, const std::string& word) {
  const auto verbs = all_verbs(app);
  return std::any_of(verbs.begin(), verbs.end(), [&](const CLI::App* verb) { return verb->get_name() == word; });
}

// The parser that got furthest: its verbs and flags are what a mistyped word may have meant.
const CLI::App& deepest(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.front());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

}  // namespace

Flags& Flags::word(const std::string& name, std::string& into, const std::string& help, bool required) {
  app_.add_option(name, into, help)->required(required);
  return *this;
}

Flags& Flags::words(const std::string& name, std::vector<std::string>& into, const std::string& help, bool required) {
  app_.add_option(name, into, help)->required(required);
  return *this;
}

Flags& Flags::flag(const std::string& name, bool& into, const std::string& help) {
  app_.add_flag(name, into, help);
  return *this;
}

Flags& Flags::option(const std::string& name, std::string& into, const std::string& help) {
  auto* option = app_.add_option(name, into, help);
  if (!into.empty()) option->capture_default_str();
  return *this;
}

Flags& Flags::option(const std::string& name, std::int64_t& into, const std::string& help) {
  app_.add_option(name, into, help)->capture_default_str();
  return *this;
}

Flags& Flags::option(const std::string& name, double& into, const std::string& help) {
  app_.add_option(name, into, help)->capture_default_str();
  return *this;
}

Flags& Flags::option(const std::string& name, std::vector<std::string>& into, const std::string& help) {
  app_.add_option(name, into, help)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>("Keeps a borrowed GPU fed, and its work alive.", "stoker")) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", "stoker " STOKER_VERSION);
}

CommandLine::~CommandLine() = default;

void CommandLine::add_group(const std::string& name, const std::string& help) {
  app_->add_subcommand(name, help)->require_subcommand(1);
}

CLI::App& CommandLine::group(const std::string& name) {
  STOKER_CHECK(is_verb(*app_, name), "a group is added before its verbs");
  return *app_->get_subcommand(name);
}

Flags CommandLine::verb(const std::string& name, const std::string& help, std::function<Exit(Printer&)> action) {
  const std::size_t space = name.find(' ');
  CLI::App& parent = space == std::string::npos ? *app_ : group(name.substr(0, space));
  CLI::App* verb = parent.add_subcommand(space == std::string::npos ? name : name.substr(space + 1), help);
  verb->add_flag("--json", json_, "Print one JSON object on stdout");
  verb->callback([this, action = std::move(action)]() { chosen_ = action; });
  return Flags(*verb);
}

std::string CommandLine::suggestion(int argc, const char* const* argv) const {
  const CLI::App& parser = deepest(*app_);
  std::vector<std::string> known;
  for (const CLI::App* verb : all_verbs(parser)) known.push_back(verb->get_name());
  for (const CLI::Option* option : parser.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (int i = 1; i < argc; ++i) {
    const std::string given = argv[i];
    const std::string word = given.substr(0, given.find('='));
    if (word == "--") break;
    if (std::find(known.begin(), known.end(), word) != known.end() || is_verb(*app_, word)) continue;
    const std::string near = nearest_match(word, known);
    if (!near.empty()) return fmt::format("did you mean '{}'?", near);
  }
  return fmt::format("`{} --help` lists what it takes", full_name(parser));
}

Exit CommandLine::run(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& asked) {
    app_->exit(asked);  // --help and --version print here
    return Exit::kOk;
  } catch (const CLI::ParseError& wrong) {
    Printer out;
    const bool unknown_verb = argc > 1 && argv[1][0] != '-' && !is_verb(*app_, argv[1]);
    out.say("error: " + (unknown_verb ? fmt::format("no verb '{}'", printable(argv[1])) : printable(wrong.what())));
    out.say("hint: " + suggestion(argc, argv));
    return Exit::kUsage;
  }
  Printer out(json_);
  return chosen_ ? chosen_(out) : Exit::kUsage;
}

}  // namespace stoker::cli
