// Package show formats values for people: numbers with units, counts and aligned tables.
package show
