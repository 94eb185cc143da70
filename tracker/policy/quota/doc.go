// Package quota says what an owner may have of a farm: its weight beside others, and bounds on its jobs, their trials,
// their artifacts and what is stored of them. It knows no jobs: what an owner has is told to it. Begin with Share.
package quota
