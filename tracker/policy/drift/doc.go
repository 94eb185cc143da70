// Package drift judges devices by their calibrations: whether a device still performs as it did, and what to do if it
// does not.
//
// A device is compared with two sets of figures. The reference is the median of its first calm calibrations and stays
// fixed; the distance from it decides whether the device is usable at all. The level is the device's current
// performance. It follows calm calibrations slowly, so gradual drift over a day, from heat or a permanent neighbour,
// is no event, while a sudden change is. Only a change between two calm calibrations casts doubt on the measurements
// between them.
//
// Noise is common on shared machines and usually lasts for seconds. A noisy calibration is soon followed by others.
// Three in a row are accepted if they agree on a different speed. A device is called noisy only if no calibration was
// calm for minutes, whether it has just joined or has measured well for days. Disturbances only lengthen samples, so
// the figures are lower quartiles, and noise is that of the lower half. A device that reports an impairment, such as a
// card throttled by heat, is believed after three calibrations as well.
package drift
