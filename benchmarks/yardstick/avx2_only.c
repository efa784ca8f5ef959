/* Make a program believe that the processor has AVX2, but no AVX-512 and no AMX.

   gcc -O2 -shared -fPIC -o avx2_only.so avx2_only.c
   LD_PRELOAD=./avx2_only.so python …

   All libraries ask the instruction CPUID which instructions they may use. Linux can
   let CPUID fail in a process (arch_prctl ARCH_SET_CPUID, x86-64 with `cpuid_fault`
   in /proc/cpuinfo). The handler below answers it, and leaves out some features.
   Threads and forked processes inherit this; a new program loads the library again. */

#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012

/* Features of leaf 7, subleaf 0: AVX-512 in all its parts. */
#define AVX512_EBX (1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | \
                    1u << 30 | 1u << 31)
#define AVX512_ECX (1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14)
/* AVX-512's 4VNNIW, 4FMAPS, VP2INTERSECT and FP16; AMX's BF16, TILE and INT8. */
#define AVX512_EDX (1u << 2 | 1u << 3 | 1u << 8 | 1u << 23 | 1u << 22 | 1u << 24 | 1u << 25)

static void answer_cpuid(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *code = (const unsigned char *)registers[REG_RIP];
  if (code[0] != 0x0f || code[1] != 0xa2) { /* A real fault, not CPUID. */
    signal(SIGSEGV, SIG_DFL);
    return;
  }
  unsigned leaf = (unsigned)registers[REG_RAX], subleaf = (unsigned)registers[REG_RCX];
  unsigned a, b, c, d;
  syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
  __cpuid_count(leaf, subleaf, a, b, c, d);
  syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
  if (leaf == 7 && subleaf == 0) {
    b &= ~AVX512_EBX;
    c &= ~AVX512_ECX;
    d &= ~AVX512_EDX;
  } else if (leaf == 7) { /* AVX-VNNI and AVX512_BF16 and later ones, AMX's FP16. */
    a = b = c = d = 0;
  }
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void leave_out_avx512(void) {
  struct sigaction action = {0};
  action.sa_sigaction = answer_cpuid;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, &action, NULL);
  if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0)) {
    static const char message[] = "avx2_only: this machine cannot let CPUID fail.\n";
    (void)!write(2, message, sizeof message - 1);
    _exit(1);
  }
}
