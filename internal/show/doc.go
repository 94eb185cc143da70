// Package show writes values as a person reads them: numbers with units, counts, aligned tables.
package show
