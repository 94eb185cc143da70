// Package guard is the pass that asks conditions around loops, not in each of their iterations. Begin with Run.
package guard
