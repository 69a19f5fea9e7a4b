#include "support/fake_fs.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace stoker::testing {

struct FakeFs::Node {
  bool directory = false;
  bool locked = false;
  std::string bytes;
  std::string durable_bytes;
  std::map<std::string, std::shared_ptr<Node>> entries;
  std::map<std::string, std::shared_ptr<Node>> durable_entries;
};

namespace {

using NodePtr = std::shared_ptr<FakeFs::Node>;

Error missing(const std::filesystem::path& path) { return {ErrorCode::kNotFound, path.string() + " is not there"}; }

std::vector<std::string> parts_of(const std::filesystem::path& path) {
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::absolute(path).lexically_normal().relative_path()) {
    if (!part.empty()) parts.push_back(part.string());
  }
  return parts;
}

NodePtr child(const NodePtr& node, const std::string& name) {
  const auto it = node->entries.find(name);
  return it == node->entries.end() ? nullptr : it->second;
}

void gather(const FakeFs::Node& node, const std::string& at, std::vector<std::string>& into) {
  for (const auto& [name, entry] : node.entries) {
    into.push_back(at + "/" + name);
    gather(*entry, at + "/" + name, into);
  }
}

void add_up(const FakeFs::Node& node, std::set<const FakeFs::Node*>& seen, std::uint64_t& total) {
  if (!seen.insert(&node).second) return;
  total += node.bytes.size();
  for (const auto& [name, entry] : node.entries) add_up(*entry, seen, total);
}

// A file that has several names stays one file.
NodePtr after_restart(const NodePtr& node, FakeFs::Loss loss, std::map<const FakeFs::Node*, NodePtr>& made) {
  if (const auto it = made.find(node.get()); it != made.end()) return it->second;
  auto copy = std::make_shared<FakeFs::Node>();
  made[node.get()] = copy;
  copy->directory = node->directory;
  copy->bytes = loss == FakeFs::Loss::kNothing ? node->bytes : node->durable_bytes;
  copy->durable_bytes = copy->bytes;
  const auto& entries = loss == FakeFs::Loss::kUnsynced ? node->durable_entries : node->entries;
  for (const auto& [name, entry] : entries) copy->entries[name] = after_restart(entry, loss, made);
  copy->durable_entries = copy->entries;
  return copy;
}

class FakeReader final : public ReadableFile {
 public:
  explicit FakeReader(NodePtr node) : node_(std::move(node)), size_(node_->bytes.size()) {}
  std::uint64_t size_bytes() const override { return size_; }
  Status read_at(std::uint64_t offset, std::span<std::byte> into) override {
    if (offset > size_ || into.size() > size_ - offset) return Error{ErrorCode::kCorrupt, "the file ends early"};
    if (!into.empty()) std::memcpy(into.data(), node_->bytes.data() + offset, into.size());
    return {};
  }

 private:
  const NodePtr node_;
  const std::uint64_t size_;
};

class FakeLock final : public LockedFile {
 public:
  explicit FakeLock(NodePtr node) : node_(std::move(node)) { node_->locked = true; }
  ~FakeLock() override { node_->locked = false; }
  Result<std::string> read() override { return node_->bytes; }
  Status write(std::string_view bytes) override {
    node_->bytes = bytes;
    return {};
  }

 private:
  const NodePtr node_;
};

}  // namespace

class FakeWriter final : public WritableFile {
 public:
  FakeWriter(FakeFs& fs, NodePtr node) : fs_(fs), node_(std::move(node)) {}

  Status append(std::span<const std::byte> bytes) override {
    const MutexLock lock(fs_.mutex_);
    STOKER_TRY(fs_.begin(FakeFs::Op::kAppend, "append"));
    const std::uint64_t free = fs_.capacity_ ? *fs_.capacity_ - std::min(*fs_.capacity_, fs_.used()) : bytes.size();
    const std::size_t fits = std::min<std::uint64_t>(free, bytes.size());
    node_->bytes.append(reinterpret_cast<const char*>(bytes.data()), fits);
    if (fits < bytes.size()) return Error{ErrorCode::kNoSpace, "the fake disk is full"};
    return {};
  }
  Status sync() override {
    const MutexLock lock(fs_.mutex_);
    STOKER_TRY(fs_.begin(FakeFs::Op::kSync, "sync"));
    node_->durable_bytes = node_->bytes;
    return {};
  }
  Status close() override {
    const MutexLock lock(fs_.mutex_);
    return fs_.begin(FakeFs::Op::kClose, "close");
  }

 private:
  FakeFs& fs_;
  const NodePtr node_;
};

FakeFs::FakeFs() : root_(std::make_shared<Node>()) { root_->directory = true; }
FakeFs::~FakeFs() = default;

void FakeFs::cut_power_before(std::size_t n) {
  const MutexLock lock(mutex_);
  cut_ = n;
}
void FakeFs::cut_power_before(Op op) {
  const MutexLock lock(mutex_);
  cut_op_ = op;
}
void FakeFs::fail(std::size_t n, ErrorCode code) {
  const MutexLock lock(mutex_);
  failures_[n] = code;
}
void FakeFs::set_capacity(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  capacity_ = bytes;
}

std::unique_ptr<FakeFs> FakeFs::restart(Loss loss) const {
  auto fs = std::make_unique<FakeFs>();
  const MutexLock lock(mutex_);
  const MutexLock theirs(fs->mutex_);
  std::map<const Node*, NodePtr> made;
  fs->root_ = after_restart(root_, loss, made);
  return fs;
}

std::size_t FakeFs::operations() const {
  const MutexLock lock(mutex_);
  return done_;
}

std::vector<std::string> FakeFs::paths() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> all;
  gather(*root_, "", all);
  return all;
}

std::string& FakeFs::bytes(const std::filesystem::path& path) {
  const MutexLock lock(mutex_);
  const auto node = find(path);
  STOKER_CHECK(node != nullptr, path.string());
  return node->bytes;
}

Status FakeFs::begin(Op op, const std::string& what) {
  if (cut_op_ == op) cut_ = done_;
  if (cut_op_ == op) cut_op_.reset();
  const std::size_t now = done_++;
  if (cut_ && now >= *cut_) return Error{ErrorCode::kIo, "the power is cut: " + what};
  if (const auto it = failures_.find(now); it != failures_.end()) return Error{it->second, "told to fail: " + what};
  return {};
}

NodePtr FakeFs::find(const std::filesystem::path& path) const {
  NodePtr node = root_;
  for (const std::string& part : parts_of(path)) {
    node = child(node, part);
    if (node == nullptr) return nullptr;
  }
  return node;
}

std::uint64_t FakeFs::used() const {
  std::set<const Node*> seen;
  std::uint64_t total = 0;
  add_up(*root_, seen, total);
  return total;
}

Result<std::unique_ptr<WritableFile>> FakeFs::create(const std::filesystem::path& path, WriteMode /*mode*/) {
  const MutexLock lock(mutex_);
  STOKER_TRY(begin(Op::kCreate, path.string()));
  const auto parent = find(path.parent_path());
  if (parent == nullptr) return missing(path.parent_path());
  auto node = std::make_shared<Node>();
  parent->entries[path.filename().string()] = node;
  return std::unique_ptr<WritableFile>(std::make_unique<FakeWriter>(*this, std::move(node)));
}

Status FakeFs::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  const MutexLock lock(mutex_);
  STOKER_TRY(begin(Op::kRename, from.string()));
  const auto node = find(from);
  const auto target = find(to.parent_path());
  if (node == nullptr || target == nullptr) return missing(from);
  const auto there = child(target, to.filename().string());
  if (there != nullptr && there->directory && !there->entries.empty())
    return Error{ErrorCode::kIo, to.string() + " is not empty"};
  find(from.parent_path())->entries.erase(from.filename().string());
  target->entries[to.filename().string()] = node;
  return {};
}

Status FakeFs::remove(const std::filesystem::path& path) {
  const MutexLock lock(mutex_);
  STOKER_TRY(begin(Op::kRemove, path.string()));
  if (find(path) == nullptr) return missing(path);
  find(path.parent_path())->entries.erase(path.filename().string());
  return {};
}

Status FakeFs::remove_all(const std::filesystem::path& path) {
  const MutexLock lock(mutex_);
  STOKER_TRY(begin(Op::kRemoveAll, path.string()));
  if (const auto parent = find(path.parent_path())) parent->entries.erase(path.filename().string());
  return {};
}

Status FakeFs::create_directories(const std::filesystem::path& path) {
  const MutexLock lock(mutex_);
  STOKER_TRY(begin(Op::kMakeDirectories, path.string()));
  NodePtr node = root_;
  for (const std::string& part : parts_of(path)) {
    auto& entry = node->entries[part];
    if (entry == nullptr) {
      entry = std::make_shared<Node>();
      entry->directory = true;
    }
    node = entry;
  }
  return {};
}

Status FakeFs::sync_directory(const std::filesystem::path& path) {
  const MutexLock lock(mutex_);
  STOKER_TRY(begin(Op::kSyncDirectory, path.string()));
  const auto node = find(path);
  if (node == nullptr) return missing(path);
  node->durable_entries = node->entries;
  return {};
}

Result<std::vector<FileInfo>> FakeFs::list(const std::filesystem::path& path) {
  const MutexLock lock(mutex_);
  const auto node = find(path);
  if (node == nullptr) return missing(path);
  std::vector<FileInfo> all;
  for (const auto& [name, entry] : node->entries) all.push_back({name, entry->bytes.size(), entry->directory});
  return all;
}

Result<FileInfo> FakeFs::stat(const std::filesystem::path& path) {
  const MutexLock lock(mutex_);
  const auto node = find(path);
  if (node == nullptr) return missing(path);
  return FileInfo{path.filename().string(), node->bytes.size(), node->directory};
}

Result<std::string> FakeFs::read(const std::filesystem::path& path, std::size_t max_bytes) {
  const MutexLock lock(mutex_);
  const auto node = find(path);
  if (node == nullptr) return missing(path);
  if (node->bytes.size() > max_bytes) return Error{ErrorCode::kBadInput, path.string() + " is too large"};
  return node->bytes;
}

Result<std::unique_ptr<ReadableFile>> FakeFs::open(const std::filesystem::path& path) {
  const MutexLock lock(mutex_);
  const auto node = find(path);
  if (node == nullptr) return missing(path);
  return std::unique_ptr<ReadableFile>(std::make_unique<FakeReader>(node));
}

Status FakeFs::link(const std::filesystem::path& from, const std::filesystem::path& to) {
  const MutexLock lock(mutex_);
  STOKER_TRY(begin(Op::kLink, from.string()));
  const auto node = find(from);
  const auto parent = find(to.parent_path());
  if (node == nullptr || parent == nullptr) return missing(from);
  parent->entries[to.filename().string()] = node;
  return {};
}

Result<std::unique_ptr<LockedFile>> FakeFs::lock(const std::filesystem::path& path) {
  const MutexLock lock(mutex_);
  const auto parent = find(path.parent_path());
  if (parent == nullptr) return missing(path.parent_path());
  auto& node = parent->entries[path.filename().string()];
  if (node == nullptr) node = std::make_shared<Node>();
  if (node->locked) return Error{ErrorCode::kInUse, path.string() + " is locked"};
  return std::unique_ptr<LockedFile>(std::make_unique<FakeLock>(node));
}

Result<std::uint64_t> FakeFs::free_bytes(const std::filesystem::path& /*path*/) {
  const MutexLock lock(mutex_);
  return capacity_ ? *capacity_ - std::min(*capacity_, used()) : std::uint64_t{1} << 40;
}

}  // namespace stoker::testing
