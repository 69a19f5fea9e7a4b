#include "feed/image/jpeg_scan.h"

#include <algorithm>
#include <cstring>

#include <jpegint.h>  // needs jpeglib.h before it

namespace stoker::feed {
namespace {

// Where coefficient k of the zigzag lies. A run may lead past 63; libjpeg puts that on 63 too.
constexpr std::uint8_t kNaturalOrder[64 + 16] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,
    6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31,
    39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

// Where a new table of runs pays for itself within one picture.
constexpr JDIMENSION kManyUnits = 1500;

// The longest that one symbol and its value can be; refill() leaves at least that many bits.
constexpr int kMostBits = 17 + 15;

HuffmanLook::Entry pack(int value, int skip, int bits) {
  return static_cast<HuffmanLook::Entry>(static_cast<std::uint32_t>(value) << 16 |
                                         static_cast<std::uint32_t>(skip) << 8 | static_cast<std::uint32_t>(bits));
}
int value_of(HuffmanLook::Entry entry) { return entry >> 16; }
int skip_of(HuffmanLook::Entry entry) { return (entry >> 8) & 255; }
int bits_of(HuffmanLook::Entry entry) { return entry & HuffmanLook::kBitsMask; }
bool is_whole(HuffmanLook::Entry entry) { return (entry & HuffmanLook::kWhole) != 0; }

// JPEG's numbers of `count` bits: those without a leading one are negative.
int extend(int value, int count) { return value < (1 << (count - 1)) ? value - (1 << count) + 1 : value; }

std::uint64_t load_be64(const std::uint8_t* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return __builtin_bswap64(word);
}

bool has_ff(std::uint64_t word) {
  const std::uint64_t inverse = ~word;
  return ((inverse - 0x0101010101010101U) & ~inverse & 0x8080808080808080U) != 0;
}

}  // namespace

bool HuffmanLook::prepare(const JHUFF_TBL& table, bool is_ac) {
  if (std::equal(counts_.begin() + 1, counts_.end(), table.bits + 1) &&
      std::equal(symbols_.begin(), symbols_.end(), table.huffval))
    return true;
  has_runs_ = false;
  std::copy_n(table.bits, counts_.size(), counts_.begin());
  std::copy_n(table.huffval, symbols_.size(), symbols_.begin());
  make_codes();
  make_look(is_ac);
  return false;
}

void HuffmanLook::prepare_runs() {
  if (has_runs_) return;
  has_runs_ = true;
  for (std::size_t i = 0; i < look_.size(); ++i) {
    runs_[i] = look_[i];
    if (!is_whole(look_[i])) continue;
    int bits = bits_of(look_[i]);
    int skip = skip_of(look_[i]);
    int before = 0;
    while (skip < DCTSIZE2) {
      const Entry next = look_[(i << bits) & (look_.size() - 1)];
      if (!is_whole(next) || bits + bits_of(next) > kLookBits) break;
      before = skip;
      bits += bits_of(next);
      skip += skip_of(next);
    }
    runs_[i] = pack(before, std::min(skip, 255), bits | kWhole);
  }
}

void HuffmanLook::make_codes() {
  std::int32_t code = 0;
  std::int32_t symbol = 0;
  for (std::size_t length = 1; length <= 16; ++length) {
    offset_[length] = symbol - code;
    symbol += counts_[length];
    code += counts_[length];
    last_code_[length] = counts_[length] > 0 ? code - 1 : -1;
    code <<= 1;
  }
  last_code_[17] = 0xFFFFF;
}

void HuffmanLook::make_look(bool is_ac) {
  Entry* out = look_.data();
  Entry* const end = out + look_.size();
  std::size_t symbol = 0;
  for (int length = 1; length <= kLookBits; ++length)
    for (int i = 0; i < counts_[static_cast<std::size_t>(length)]; ++i, ++symbol) {
      if (end - out < 1 << (kLookBits - length)) return;  // more codes than there can be: libjpeg has refused them
      out = add_code(out, length, symbols_[symbol & 255], is_ac);
    }
  std::fill(out, end, 0);
}

HuffmanLook::Entry* HuffmanLook::add_code(Entry* out, int length, int symbol, bool is_ac) {
  const int run = is_ac ? symbol >> 4 : 0;
  const int size = symbol & 15;
  const int rest = kLookBits - length;
  if (is_ac && size == 0) return std::fill_n(out, 1 << rest, pack(0, run == 15 ? 16 : kEndOfBlock, length | kWhole));
  if (size > rest) return std::fill_n(out, 1 << rest, pack(0, symbol, length | kSymbol));
  if (size == 0) return std::fill_n(out, 1 << rest, pack(0, 1, length | kWhole));
  // Values below half of 2^size are negative, the others themselves.
  const int half = 1 << (size - 1);
  for (int raw = 0; raw < 2 * half; ++raw)
    out = std::fill_n(out, 1 << (rest - size),
                      pack(raw < half ? raw - 2 * half + 1 : raw, run + 1, (length + size) | kWhole));
  return out;
}

int HuffmanLook::slow(std::uint64_t bits, int& used) const {
  std::size_t length = 1;
  while (static_cast<std::int32_t>(bits >> (64 - length)) > last_code_[length]) ++length;
  used = static_cast<int>(length);
  if (length > 16) return 0;
  return symbols_[static_cast<std::size_t>(static_cast<std::int32_t>(bits >> (64 - length)) + offset_[length]) & 255];
}

bool ScanReader::take_over(jpeg_decompress_struct& info, const std::uint8_t* begin, const std::uint8_t* end) {
  if (info.progressive_mode || info.arith_code || info.restart_interval != 0 || jpeg_has_multiple_scans(&info) ||
      info.entropy == nullptr)
    return false;
  block_count_ = info.blocks_in_MCU;
  for (int i = 0; i < block_count_; ++i) {
    const int component = info.MCU_membership[i];
    const jpeg_component_info& about = *info.cur_comp_info[component];
    HuffmanLook& dc = dc_[static_cast<std::size_t>(about.dc_tbl_no)];
    HuffmanLook& ac = ac_[static_cast<std::size_t>(about.ac_tbl_no)];
    dc.prepare(*info.dc_huff_tbl_ptrs[about.dc_tbl_no], false);
    const bool known = ac.prepare(*info.ac_huff_tbl_ptrs[about.ac_tbl_no], true);
    if (known || info.MCUs_per_row * info.MCU_rows_in_scan >= kManyUnits) ac.prepare_runs();
    blocks_[static_cast<std::size_t>(i)] = {&dc, &ac, component};
  }
  last_dc_.fill(0);
  place_ = Place();
  place_.at = begin;
  place_.end = end;
  ran_out_ = false;
  columns_ = static_cast<int>(info.MCUs_per_row);
  column_ = 0;
  keep_columns(0, columns_);
  info.client_data = this;
  info.entropy->decode_mcu = &ScanReader::decode_mcu;
  return true;
}

void ScanReader::keep_columns(int first, int last) {
  first_ = first;
  last_ = last;
}

void ScanReader::Place::refill_bytes() {
  while (left <= 56) {
    std::uint64_t byte = 0;
    if (!at_marker) {
      const std::uint8_t* next = at + 1;
      byte = at < end ? *at : 0;
      if (byte == 0xff) {
        while (next < end && *next == 0xff) ++next;
        at_marker = next >= end || *next != 0;
        ++next;
      }
      at_marker = at_marker || at >= end;
      if (!at_marker) at = next;
    }
    if (at_marker) {
      byte = 0;
      invented += 8;
    }
    bits |= byte << (56 - left);
    left += 8;
  }
}

inline void ScanReader::Place::refill() {
  if (left >= kMostBits) return;
  if (end - at >= 8) {
    const std::uint64_t word = load_be64(at);
    if (!has_ff(word)) {
      // What does not fit is left in `bits` below the `left` that count: the same bits come there again.
      bits |= word >> left;
      at += (63 - left) >> 3;
      left |= 56;
      return;
    }
  }
  Place copy = *this;  // so that this one can stay in registers
  copy.refill_bytes();
  *this = copy;
}

inline int ScanReader::Place::take_value(int count) {
  const int value = static_cast<int>(bits >> (64 - count));
  use(count);
  return extend(value, count);
}

inline int ScanReader::Place::read_dc(const HuffmanLook& look) {
  refill();
  const HuffmanLook::Entry entry = look.at(bits);
  if (is_whole(entry)) {
    use(bits_of(entry));
    return value_of(entry);
  }
  int length = bits_of(entry);
  int size = skip_of(entry);
  if (entry == 0) size = look.slow(bits, length) & 15;
  use(length);
  return size > 0 ? take_value(size) : 0;
}

// Goes on from coefficient k by one symbol.
template <bool kStore>
inline int ScanReader::Place::read_symbol(const HuffmanLook& look, int k, JCOEF* out) {
  const HuffmanLook::Entry entry = look.at(bits);
  if (is_whole(entry)) {
    use(bits_of(entry));
    k += skip_of(entry);
    // A run of zeros alone stores one of them, where there is none yet; the end of a block stores nothing.
    if (kStore && k < HuffmanLook::kEndOfBlock) out[kNaturalOrder[k]] = static_cast<JCOEF>(value_of(entry));
    return k;
  }
  int length = bits_of(entry);
  int symbol = skip_of(entry);
  if (entry == 0) symbol = look.slow(bits, length);
  use(length);
  const int size = symbol & 15;
  const int run = symbol >> 4;
  if (size == 0) return k + (run == 15 ? 16 : HuffmanLook::kEndOfBlock);
  k += run + 1;
  const int value = take_value(size);
  if (kStore) out[kNaturalOrder[k]] = static_cast<JCOEF>(value);
  return k;
}

inline void ScanReader::Place::read_ac(const HuffmanLook& look, JCOEF* out) {
  int k = 0;
  do {
    refill();
    k = read_symbol<true>(look, k, out);
  } while (k < DCTSIZE2 - 1);
}

inline void ScanReader::Place::skip_ac(const HuffmanLook& look) {
  int k = 0;
  do {
    refill();
    const HuffmanLook::Entry entry = look.has_runs() ? look.run_at(bits) : 0;
    // All but the last symbol must belong to this block.
    if (is_whole(entry) && k + value_of(entry) < DCTSIZE2 - 1) {
      use(bits_of(entry));
      k += skip_of(entry);
    } else {
      k = read_symbol<false>(look, k, nullptr);
    }
  } while (k < DCTSIZE2 - 1);
}

template <bool kStore>
void ScanReader::read_unit(JBLOCKROW* blocks) {
  Place place = place_;
  for (int i = 0; i < block_count_; ++i) {
    const Block& block = blocks_[static_cast<std::size_t>(i)];
    int& dc = last_dc_[static_cast<std::size_t>(block.component)];
    dc = static_cast<int>(static_cast<unsigned>(dc) + static_cast<unsigned>(place.read_dc(*block.dc)));
    if constexpr (kStore) {
      JCOEF* out = **(blocks + i);
      out[0] = static_cast<JCOEF>(dc);
      place.read_ac(*block.ac, out);
    } else {
      place.skip_ac(*block.ac);
    }
  }
  place_ = place;
}

boolean ScanReader::decode_mcu(j_decompress_ptr info, JBLOCKROW* blocks) {
  auto* self = static_cast<ScanReader*>(info->client_data);
  const int column = self->column_;
  self->column_ = column + 1 == self->columns_ ? 0 : column + 1;
  if (self->ran_out_) return TRUE;  // libjpeg has emptied the blocks
  if (blocks != nullptr && column >= self->first_ && column <= self->last_)
    self->read_unit<true>(blocks);
  else
    self->read_unit<false>(nullptr);
  self->ran_out_ = self->place_.left < self->place_.invented;
  return TRUE;
}

}  // namespace stoker::feed
