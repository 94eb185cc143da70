// Package show turns values into what a person reads: numbers with units, aligned tables, names of wire enums.
package show
