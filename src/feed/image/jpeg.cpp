// JPEG through libjpeg-turbo.
//
// Like Pillow, it feeds the library from a source that runs dry at the file's end instead of inventing an end marker:
// a file is refused exactly when the decoder asks for bytes that are not there before the last row is out.
// Only the crop's rows and iMCU columns are decoded. That needs certainty that the part that is not looked at would not
// have been refused, so a file whose scan does not visibly end in an end-of-image marker is decoded whole.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <vector>

#include <jpeglib.h>  // needs <cstdio> before it

#include "feed/image/codec.h"
#include "feed/image/jpeg_header.h"
#include "feed/image/jpeg_scan.h"

namespace stoker::feed {
namespace {

constexpr int kBandRows = 16;
// Chroma upsampling makes the outermost pixel of what is decoded from one neighbour less; it must not be one of the
// crop's. (Above and below libjpeg keeps the neighbouring rows itself.)
constexpr int kMargin = 2;

struct ErrorHandler {
  jpeg_error_mgr base;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

// libjpeg's only way to end a call is to not return from this one.
[[noreturn]] void on_error(j_common_ptr info) {
  auto* handler = reinterpret_cast<ErrorHandler*>(info->err);
  handler->base.format_message(info, handler->message);
  std::longjmp(handler->jump, 1);
}
void on_message(j_common_ptr /*info*/) {}  // warnings: Pillow does not look at them either

boolean refuse_to_fill(j_decompress_ptr /*info*/) { return FALSE; }
void do_nothing(j_decompress_ptr /*info*/) {}
void skip_bytes(j_decompress_ptr info, long count) {
  jpeg_source_mgr* source = info->src;
  const std::size_t step = std::min(static_cast<std::size_t>(std::max(count, 0L)), source->bytes_in_buffer);
  source->next_input_byte += step;
  source->bytes_in_buffer -= step;
}

int round_down(int value, int step) { return std::max(value, 0) / step * step; }
int round_up(int value, int step) { return round_down(value + step - 1, step); }

// A row of CMYK as Adobe writes it (inverted), in place, to RGBX with Pillow's rounding.
void cmyk_to_rgb(std::uint8_t* row, int width) {
  for (int x = 0; x < width; ++x, row += kPixelBytes) {
    const int white = row[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - row[c]) * white + 128;
      row[c] = static_cast<std::uint8_t>(std::max(white - (((product >> 8) + product) >> 8), 0));
    }
  }
}

class JpegCodec final : public Codec {
 public:
  JpegCodec() {
    info_.err = jpeg_std_error(&error_.base);
    error_.base.error_exit = &on_error;
    error_.base.output_message = &on_message;
    const bool created = guarded([this] { jpeg_create_decompress(&info_); });
    STOKER_CHECK(created, "libjpeg is of another version than its header");
    source_.init_source = &do_nothing;
    source_.term_source = &do_nothing;
    source_.fill_input_buffer = &refuse_to_fill;
    source_.skip_input_data = &skip_bytes;
    source_.resync_to_restart = &jpeg_resync_to_restart;
    info_.src = &source_;
  }
  ~JpegCodec() override { jpeg_destroy_decompress(&info_); }
  JpegCodec(const JpegCodec&) = delete;
  JpegCodec& operator=(const JpegCodec&) = delete;

  Result<ImageInfo> open(Bytes file) override {
    file_ = file;
    Result<ImageInfo> header = read_jpeg_header(file);
    if (header) header_ = *header;
    (void)shrink(1);
    return header;
  }

  bool shrink(int denominator) override {
    denominator_ = denominator;
    width_ = (header_.width + denominator - 1) / denominator;
    height_ = (header_.height + denominator - 1) / denominator;
    return true;
  }

  Status decode(const IntBox& box, RowSink& sink) override {
    Status status = run(box, sink);
    jpeg_abort_decompress(&info_);
    return status;
  }

 private:
  // Runs `body`, whose frames hold nothing that needs destroying; false when libjpeg gave up, message in error_.
  template <typename Body>
  bool guarded(Body body) {
    if (setjmp(error_.jump) != 0) return false;
    body();
    return true;
  }

  Error failed() const { return corrupt(std::string("the JPEG does not decode: ") + error_.message); }
  Error ran_dry() const {
    return corrupt("the JPEG is cut short: its " + std::to_string(file_.size()) + " bytes end before the picture does");
  }

  Status run(const IntBox& box, RowSink& sink) {
    STOKER_TRY(start());
    const bool partial = may_skip();
    IntBox area{0, 0, width_, height_};
    // Where a marker is seen to end the scan, our reader never runs dry and gives what libjpeg's would. Not with fill
    // bytes: libjpeg reads the unit that they stand in twice, and leaves coefficients of the first time behind.
    const bool ours =
        scan_end_ == ScanEnd::kPlain && reader_.take_over(info_, scan_start_, file_.data() + file_.size());
    if (partial) STOKER_TRY(narrow(box, area));
    if (ours) keep_columns(area);
    STOKER_TRY(read_rows(box, area, sink));
    return partial ? Status() : drain();
  }

  // Reads the header and chooses colours as Pillow does; a file of many scans is read to its end here.
  Status start() {
    source_.next_input_byte = file_.data();
    source_.bytes_in_buffer = file_.size();
    outcome_ = JPEG_SUSPENDED;
    scan_end_ = ScanEnd::kUnknown;
    boolean started = FALSE;
    const bool ok = guarded([this, &started] {
      do outcome_ = jpeg_read_header(&info_, FALSE);
      while (outcome_ == JPEG_HEADER_TABLES_ONLY);
      if (outcome_ == JPEG_SUSPENDED) return;
      info_.out_color_space = info_.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
      info_.scale_num = 1;
      info_.scale_denom = static_cast<unsigned>(denominator_);
      scan_start_ = source_.next_input_byte;
      started = jpeg_start_decompress(&info_);
    });
    if (!ok) return failed();
    if (started == FALSE) return ran_dry();
    if (static_cast<int>(info_.output_width) != width_ || static_cast<int>(info_.output_height) != height_)
      return corrupt("the JPEG gives its size twice, and not the same");
    return {};
  }

  // May rows and columns outside the crop stay undecoded, with the same pixels and the same verdict on the file?
  bool may_skip() {
    if (info_.arith_code) return false;
    if (jpeg_has_multiple_scans(&info_)) return !smooths_blocks();
    scan_end_ = scan_end(file_.subspan(static_cast<std::size_t>(scan_start_ - file_.data())));
    return scan_end_ != ScanEnd::kUnknown;
  }

  // An unfinished progressive file is smoothed over several blocks, more than one iMCU of margin can hold.
  bool smooths_blocks() const {
    if (!info_.progressive_mode || info_.coef_bits == nullptr) return false;
    for (int c = 0; c < info_.num_components; ++c)
      for (int i = 0; i < DCTSIZE2; ++i)
        if (info_.coef_bits[c][i] != 0) return true;
    return false;
  }

  // Tells libjpeg which part to decode; `area` becomes what it will deliver.
  Status narrow(const IntBox& box, IntBox& area) {
    const int step = std::max(info_.max_h_samp_factor * DCTSIZE / denominator_, 1);
    const int left = std::max(round_down(box.left - kMargin, step), 0);
    const int right = std::min(round_up(box.left + box.width + kMargin, step), width_);
    auto x = static_cast<JDIMENSION>(left);
    auto width = static_cast<JDIMENSION>(right - left);
    JDIMENSION skipped = 0;
    const bool ok = guarded([&, this] {
      if (width < info_.output_width) jpeg_crop_scanline(&info_, &x, &width);
      if (box.top > 0) skipped = jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(box.top));
    });
    if (!ok) return failed();
    STOKER_CHECK(static_cast<int>(skipped) == box.top && static_cast<int>(x) <= box.left,
                 "libjpeg skipped something else");
    area = {static_cast<int>(x), box.top, static_cast<int>(width), height_ - box.top};
    return {};
  }

  // The MCUs of the part that libjpeg delivers, and one more on either side.
  void keep_columns(const IntBox& area) {
    // A lone component's MCU is one block, whatever its sampling factor says.
    const int step = std::max((info_.comps_in_scan == 1 ? 1 : info_.max_h_samp_factor) * DCTSIZE / denominator_, 1);
    reader_.keep_columns(area.left / step - 1, (area.left + area.width) / step + 1);
  }

  Status read_rows(const IntBox& box, const IntBox& area, RowSink& sink) {
    const std::size_t stride = row_bytes(area.width);
    band_.resize(stride * kBandRows);
    const std::uint8_t* pixels = band_.data() + static_cast<std::size_t>(box.left - area.left) * kPixelBytes;
    const int bottom = box.top + box.height;
    for (int y = area.top; y < bottom;) {
      const int stop = y < box.top ? box.top : bottom;  // rows above the box are a band of their own
      const int count = std::min(kBandRows, stop - y);
      STOKER_TRY(read_band(count, stride));
      if (y >= box.top) sink.rows(y - box.top, count, pixels, stride);
      y += count;
    }
    return {};
  }

  // Fills the first `count` rows of the band.
  Status read_band(int count, std::size_t stride) {
    rows_read_ = 0;
    const bool ok = guarded([=, this] {
      JSAMPROW rows[kBandRows];
      for (int i = 0; i < count; ++i) rows[i] = band_.data() + static_cast<std::size_t>(i) * stride;
      while (rows_read_ < count) {
        const auto left = static_cast<JDIMENSION>(count - rows_read_);
        const auto got = static_cast<int>(jpeg_read_scanlines(&info_, rows + rows_read_, left));
        if (got == 0) break;
        rows_read_ += got;
      }
    });
    if (!ok) return failed();
    if (rows_read_ < count) return ran_dry();
    if (info_.out_color_space == JCS_CMYK)
      for (int i = 0; i < count; ++i)
        cmyk_to_rgb(band_.data() + static_cast<std::size_t>(i) * stride, static_cast<int>(info_.output_width));
    return {};
  }

  // Decodes what is left only to learn whether Pillow would have refused the file.
  Status drain() {
    const std::size_t stride = row_bytes(static_cast<int>(info_.output_width));
    while (info_.output_scanline < info_.output_height) {
      const int left = static_cast<int>(info_.output_height - info_.output_scanline);
      STOKER_TRY(read_band(std::min(kBandRows, left), stride));
    }
    // Running dry here is no fault: every row is out.
    if (!guarded([this] { jpeg_finish_decompress(&info_); })) return failed();
    return {};
  }

  Bytes file_;
  ImageInfo header_;
  int denominator_ = 1;
  int width_ = 0;  // as decoded: the header's by the denominator
  int height_ = 0;
  std::vector<std::uint8_t> band_;
  ScanReader reader_;

  jpeg_decompress_struct info_{};
  jpeg_source_mgr source_{};
  ErrorHandler error_{};
  // Set inside guarded(): a local could be lost in the jump.
  int outcome_ = JPEG_SUSPENDED;
  int rows_read_ = 0;
  const std::uint8_t* scan_start_ = nullptr;
  ScanEnd scan_end_ = ScanEnd::kUnknown;
};

}  // namespace

std::unique_ptr<Codec> make_jpeg_codec() { return std::make_unique<JpegCodec>(); }

}  // namespace stoker::feed
