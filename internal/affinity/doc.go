// Package affinity confines threads and processes to some of the machine's logical processors.
package affinity
