/* A card's health from NVIDIA's management library, which is loaded at run time. Names, types and numbers follow the library's documentation. */
#ifndef TILTH_NVML_H
#define TILTH_NVML_H

/* A number that the card does not tell. */
#define NOT_TOLD (-1LL)

struct health {
  long long celsius, reasons; /* why clocks are held down, as bits */
  struct { long long megahertz, most; } multiprocessors, memory;
  long long corrected, uncorrected; /* errors of the memory since the driver was loaded */
};

struct nvml;

/* Opens the library for the card, or the slice of one, with a UUID. On failure it returns NULL, with a message. */
struct nvml *nvml_open(const char *library, const char *uuid, char *message, int message_bytes);

/* Reads the card's health. */
struct health nvml_read(const struct nvml *n);

#endif
