// Package cpulist parses and formats lists of logical processors in Linux notation, such as 0-3,8.
package cpulist
