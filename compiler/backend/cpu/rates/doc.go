// Package rates measures what a processor does at most: multiply-adds in registers and reads of each of its stores.
package rates
