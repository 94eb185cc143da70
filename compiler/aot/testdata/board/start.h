/* What a board's start file gives the program, and what it calls. */
#include <stdint.h>

int main(void);
void print(const char *text);
void quit(int code) __attribute__((noreturn));
uint32_t ticks(void); /* instructions executed, about, where the emulator counts them */
