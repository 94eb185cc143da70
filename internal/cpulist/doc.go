// Package cpulist reads and writes lists of logical processors as Linux does, such as 0-3,8.
package cpulist
