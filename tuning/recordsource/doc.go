// Package recordsource reads and adds records wherever they are: in a file, or at a tracker. Begin with Source.
package recordsource
