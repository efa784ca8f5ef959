/* Make a program believe that the processor has AVX2, but no AVX-512 and no AMX.

   gcc -O2 -shared -fPIC -o avx2_only.so avx2_only.c
   AVX2_ONLY_ADDRESSES=addresses.txt LD_AUDIT=./avx2_only.so python …

   Libraries ask the instruction CPUID which instructions they may use. The dynamic
   linker calls la_objopen for each library before the library's own code runs.
   It replaces each CPUID with UD2, an invalid instruction of the same length. The
   handler of the signal that follows answers in place of the processor, and leaves out
   some features. The lines of addresses.txt are the hexadecimal address of a CPUID
   in the file, a space, and the path of the library. */

#define _GNU_SOURCE
#include <cpuid.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define MOST_ADDRESSES 65536

/* Features of leaf 7, subleaf 0: AVX-512 in all its parts. */
#define AVX512_EBX (1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | \
                    1u << 30 | 1u << 31)
#define AVX512_ECX (1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14)
/* AVX-512's 4VNNIW, 4FMAPS, VP2INTERSECT and FP16; AMX's BF16, TILE and INT8. */
#define AVX512_EDX (1u << 2 | 1u << 3 | 1u << 8 | 1u << 23 | 1u << 22 | 1u << 24 | 1u << 25)

static unsigned char *replaced[MOST_ADDRESSES];
static int number_replaced;

static void stop(const char *why) {
  fprintf(stderr, "avx2_only: %s.\n", why);
  _exit(1);
}

static void answer_cpuid(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  int i = 0;
  while (i < number_replaced && replaced[i] != (unsigned char *)registers[REG_RIP]) i++;
  if (i == number_replaced) { /* An invalid instruction of the program. */
    signal(SIGILL, SIG_DFL);
    return;
  }
  unsigned leaf = (unsigned)registers[REG_RAX], subleaf = (unsigned)registers[REG_RCX];
  unsigned a, b, c, d;
  __cpuid_count(leaf, subleaf, a, b, c, d);
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

static void replace(unsigned char *code) {
  if (code[0] != 0x0f || code[1] != 0xa2) stop("a library changed since its scan");
  if (number_replaced == MOST_ADDRESSES) stop("too many CPUID instructions");
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char *start = (unsigned char *)((size_t)code & ~(page - 1));
  /* Two pages, because the instruction can cross their border. */
  size_t length = code + 2 > start + page ? 2 * page : page;
  if (mprotect(start, length, PROT_READ | PROT_WRITE | PROT_EXEC))
    stop("a library's code cannot be changed here");
  code[1] = 0x0b;
  mprotect(start, length, PROT_READ | PROT_EXEC);
  replaced[number_replaced++] = code;
}

unsigned la_version(unsigned version) {
  struct sigaction action = {0};
  action.sa_sigaction = answer_cpuid;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGILL, &action, NULL);
  return LAV_CURRENT;
}

unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
  char path[4096], line[4200];
  const char *addresses = getenv("AVX2_ONLY_ADDRESSES");
  FILE *file = addresses ? fopen(addresses, "r") : NULL;
  if (!file) stop("AVX2_ONLY_ADDRESSES is not a readable file");
  if (realpath(map->l_name, path)) {
    while (fgets(line, sizeof line, file)) {
      char *end;
      size_t address = strtoull(line, &end, 16);
      line[strcspn(line, "\n")] = 0;
      if (*end == ' ' && !strcmp(end + 1, path))
        replace((unsigned char *)map->l_addr + address);
    }
  }
  fclose(file);
  return 0;
}
