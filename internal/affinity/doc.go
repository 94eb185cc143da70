// Package affinity confines what is started to some of the machine's logical processors.
package affinity
