// Which kernels use Tensor Cores, by what NVIDIA's libraries put into their names: the shape of the matrix instruction
// (884 on Volta, 1688 and 16816 and their kin later), its kind (hmma, imma, wgmma, gmma), input types that only Tensor
// Cores take in that library (tf32f32, bf16bf16, e4m3), or a family that has no other form (nvjet, flash attention).
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "watch/kineto/gpu_work.h"

namespace stoker::watch::kineto {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

template <std::size_t N>
bool has_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

constexpr std::array<std::string_view, 26> kTensor = {"h884",
                                                      "s884",
                                                      "h1688",
                                                      "s1688",
                                                      "c1688",
                                                      "i8816",
                                                      "i8832",
                                                      "16816",
                                                      "i16832",
                                                      "hmma",
                                                      "imma",
                                                      "wgmma",
                                                      "gmma",
                                                      "wmma",
                                                      "tensorop",
                                                      "tensor_core",
                                                      "tf32f32",
                                                      "xmma_gemm_f16",
                                                      "f16f16_f16f32_f32",
                                                      "bf16bf16",
                                                      "i8i8",
                                                      "e4m3",
                                                      "e5m2",
                                                      "nvjet",
                                                      "flash_fwd",
                                                      "flash_bwd"};
constexpr std::array<std::string_view, 12> kMatrix = {"gemm", "gemv",    "conv",  "wgrad",  "dgrad", "winograd",
                                                      "hmma", "cutlass", "cudnn", "flash_", "fmha",  "cublas"};
// Those that move or arrange data for a product, or normalise, and do none.
constexpr std::array<std::string_view, 7> kNoMatrix = {"im2col", "col2im", "nchwtonhwc",    "nhwctonchw",
                                                       "bn_fw",  "bn_bw",  "computeoffsets"};

}  // namespace

bool uses_tensor_cores(std::string_view kernel) { return has_any(lower(kernel), kTensor); }

bool is_matrix_kernel(std::string_view kernel) {
  const std::string text = lower(kernel);
  return has_any(text, kTensor) || (has_any(text, kMatrix) && !has_any(text, kNoMatrix));
}

TensorCoreUse tensor_core_use(const std::vector<KernelUse>& kernels) {
  TensorCoreUse out;
  for (const KernelUse& kernel : kernels) {
    if (kernel.work != WorkClass::kCompute) continue;
    if (kernel.tensor_cores) add_ns(out.tensor_ns, kernel.total_ns);
    if (is_matrix_kernel(kernel.name)) add_ns(out.matrix_ns, kernel.total_ns);
  }
  return out;
}

}  // namespace stoker::watch::kineto
