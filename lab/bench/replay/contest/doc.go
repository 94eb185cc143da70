// Package contest compares searches on recorded sets: the number of trials until each gets close to the best known
// schedule. Start with Run.
package contest
