// Package energy reads the energy meters of a machine: energy counters (powercap, hwmon) and power sensors
// (hwmon, such as an INA219, INA226 or INA3221 on a board). Start with Open.
package energy
