#include "verbs.h"

int main(int argc, char** argv) {
  stoker::cli::CommandLine cli;
  stoker::cli::add_all_verbs(cli);
  return static_cast<int>(cli.run(argc, argv));
}
