// The entropy-coded scan of a baseline JPEG, read faster than libjpeg reads it.
//
// Half of the time of a large photograph goes into Huffman codes, most of them of blocks that the crop does not show.
// ScanReader takes the place of libjpeg's own reader (jpegint.h: jpeg_entropy_decoder::decode_mcu) after
// jpeg_start_decompress(), and libjpeg goes on to do everything else. Coefficients are libjpeg's for any bytes: those
// behind a marker count as zero bits, a code that is in no table as symbol 0, and after the unit in which the bits ran
// out all blocks are empty. It never asks for more input, so it is only for scans that end in a marker.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>

#include <jpeglib.h>  // needs <cstdio> before it

#include "feed/image/bytes.h"

namespace stoker::feed {

// One Huffman table: what the next kLookBits bits of the scan mean.
class HuffmanLook {
 public:
  static constexpr int kLookBits = 11;

  // An AC entry is one of
  //   value (upper 16 bits), run of zeros before it, bits of code and value, kWhole: nothing else to read
  //   symbol, bits of the code, kSymbol: value bits follow
  //   0: the code is longer than kLookBits, or no code.
  // In one word, so that it is one load: value << 16 | skip << 8 | kind and bits.
  // skip: with kWhole the coefficients to go on by, with kSymbol the symbol.
  using Entry = std::int32_t;
  static constexpr int kWhole = 0x40;
  static constexpr int kSymbol = 0x80;
  static constexpr int kBitsMask = 0x3f;
  static constexpr int kEndOfBlock = 128;  // a skip past any block

  // Makes the tables, unless `table` is the one that they are of already. True: it is.
  bool prepare(const JHUFF_TBL& table, bool is_ac);
  // For AC codes that are only to be counted through: as many symbols as the bits hold. It takes the time of some
  // hundred units, so it must be worth that. What stands in for the value: the coefficients before the last symbol.
  void prepare_runs();
  bool has_runs() const { return has_runs_; }
  Entry run_at(std::uint64_t bits) const { return runs_[bits >> (64 - kLookBits)]; }
  Entry at(std::uint64_t bits) const { return look_[bits >> (64 - kLookBits)]; }
  // The symbol whose code `bits` begins with, of any length; `used` is the code's length. No code: 0, 17 bits.
  int slow(std::uint64_t bits, int& used) const;

 private:
  void make_codes();
  void make_look(bool is_ac);
  // Writes what all bits that begin with one code mean; returns where the next code's go.
  static Entry* add_code(Entry* out, int length, int symbol, bool is_ac);

  std::array<Entry, 1 << kLookBits> look_{};
  std::array<Entry, 1 << kLookBits> runs_{};
  bool has_runs_ = false;
  std::array<std::uint8_t, 17> counts_{};
  std::array<std::uint8_t, 256> symbols_{};
  std::array<std::int32_t, 18> last_code_{};  // of each length, −1: none; [17] ends every search
  std::array<std::int32_t, 17> offset_{};     // symbols_ index of code c of that length: c + offset
};

class ScanReader {
 public:
  // Takes over a started decompression whose scan is the bytes from `begin` on. False: not a kind of file that it reads
  // (progressive, restart markers, several scans); then nothing is changed. `info.client_data` becomes this object.
  // Needs: a marker somewhere in [begin, end).
  bool take_over(jpeg_decompress_struct& info, const std::uint8_t* begin, const std::uint8_t* end);
  // Only the units (MCUs) of columns [first, last] need their coefficients from now on.
  void keep_columns(int first, int last);

 private:
  struct Block {
    const HuffmanLook* dc;
    const HuffmanLook* ac;
    int component;
  };

  // Where in the scan one is. A copy of it lives in registers while a unit is read.
  struct Place {
    const std::uint8_t* at = nullptr;
    const std::uint8_t* end = nullptr;
    std::uint64_t bits = 0;  // the next `left` bits of the scan, from the top
    int left = 0;
    int invented = 0;  // of `left`, zero bits that no byte gave
    bool at_marker = false;

    void refill();
    void refill_bytes();
    void use(int count) {
      bits <<= count;
      left -= count;
    }
    int take_value(int count);
    int read_dc(const HuffmanLook& look);
    template <bool kStore>
    int read_symbol(const HuffmanLook& look, int k, JCOEF* out);
    void read_ac(const HuffmanLook& look, JCOEF* out);
    void skip_ac(const HuffmanLook& look);
  };

  static boolean decode_mcu(j_decompress_ptr info, JBLOCKROW* blocks);
  template <bool kStore>
  void read_unit(JBLOCKROW* blocks);

  std::array<HuffmanLook, NUM_HUFF_TBLS> dc_;
  std::array<HuffmanLook, NUM_HUFF_TBLS> ac_;
  std::array<Block, D_MAX_BLOCKS_IN_MCU> blocks_{};
  int block_count_ = 0;
  std::array<int, MAX_COMPS_IN_SCAN> last_dc_{};

  Place place_;
  bool ran_out_ = false;

  int columns_ = 0;
  int column_ = 0;
  int first_ = 0;
  int last_ = 0;
};

}  // namespace stoker::feed
