// Package energy reads the meters of a machine: counters of energy (powercap, hwmon) and sensors of power (hwmon, as
// of an INA219, INA226 or INA3221 on a board). Begin with Open.
package energy
