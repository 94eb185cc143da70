// Package drift judges a device by its calibrations: whether it is what it was, and what is to be done where it is
// not.
//
// A device is compared with two figures. The reference is the median of its first calm calibrations and stays; how
// far the device is from it says whether it can be used at all. The level is what the device is now: it follows the
// calm calibrations slowly, so that the drift of a whole day, by heat or by a neighbour who stays, is no event, and a
// change at once. Only a change between two calm calibrations makes what was measured between them uncertain.
//
// Noise is the rule on shared machines, and mostly lasts for seconds. A calibration that is not calm is followed by
// others soon. Three in a row are believed when they agree on another speed; a device is called noisy only when none
// was calm for minutes, whether it has just joined or measured well for days. What disturbs only ever lengthens a
// sample, so the figures are lower quartiles, and noise is that of the lower half. A device that says itself that
// something impairs it, such as a card that is slowed down to cool, is believed after three calibrations, too.
package drift
