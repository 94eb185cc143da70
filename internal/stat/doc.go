// Package stat sums up samples.
package stat
