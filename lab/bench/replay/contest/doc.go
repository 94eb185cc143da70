// Package contest compares searches on recorded sets: how many trials each takes to get close to the best known
// schedule. Begin with Run.
package contest
