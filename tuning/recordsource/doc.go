// Package recordsource reads and adds records where they are: in a file, or at a tracker.
package recordsource
