// Package config sets a command's flags from a YAML file and from the environment, too. A flag's default is overridden
// by the file, that by the environment, and that by the flag itself. Every flag is a key of the file, by its name, and
// a variable TILTH_NAME, so a new flag is listed nowhere else. Begin with Apply.
package config
