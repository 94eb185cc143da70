// Package npz reads and writes numpy's .npz archives: zip files of .npy arrays.
package npz
