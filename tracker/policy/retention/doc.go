// Package retention decides which ended jobs to keep. An Archive indexes them by age and size; Rules name the next one
// to drop. It stores nothing.
package retention
