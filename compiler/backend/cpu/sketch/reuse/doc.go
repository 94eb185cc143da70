// Package reuse estimates what loops around a tile wait for: which part of each tensor they touch, and how often
// caches are filled with it. It is what sketches can ask for thousands of points a second, from numbers alone; package
// cost asks the same of whole schedules. Begin with Nest.Waiting.
package reuse
