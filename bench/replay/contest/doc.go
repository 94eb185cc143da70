// Package contest compares searches on recorded sets: how many trials each takes to come near the best schedule that
// is known.
package contest
