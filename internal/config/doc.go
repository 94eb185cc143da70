// Package config sets a command's flags from a YAML file and from the environment too, each stronger than the one
// before: a flag's default, the file, the environment, the flag itself. Every flag is a key of the file by its name,
// and a variable TILTH_NAME, so that a new one is listed nowhere else.
package config
