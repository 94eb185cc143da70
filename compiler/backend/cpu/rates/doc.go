// Package rates measures the limits of a processor: multiply-adds in registers, and reads from each level of memory.
package rates
