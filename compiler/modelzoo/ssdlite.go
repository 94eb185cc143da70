package modelzoo

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
)

// ssdlite is a detector (Liu et al. 2016, SSD; Sandler et al. 2018, section 6.2) on MobileNet v3, like torchvision's:
// for maps of several resolutions, separable convolutions compute scores and offsets of six boxes at each position.
type ssdlite struct {
	size, classes int64
	blocks        []inverted
	// extra lists the channels of the additional maps, each half as high and wide as the one before.
	extra []int64
	// detections is the largest number of detections per class.
	detections int64
}

// boxesAt is the number of boxes per position.
const boxesAt = 6

func (n ssdlite) build(b *builder, s size) {
	maps := n.maps(b, b.input("data", array.Float32, s.batch, 3, n.size, n.size))
	var scores, offsets []string
	for _, m := range maps {
		scores = append(scores, n.predicted(b, m, n.classes))
		offsets = append(offsets, n.predicted(b, m, 4))
	}
	probabilities := b.transpose(b.part(b.softmax(b.joined(1, scores...)), 2, 1, n.classes), 0, 2, 1)
	n.detect(b, b.boxes(b.joined(1, offsets...), n.defaults(b, maps)), probabilities)
}

// maps returns the feature maps: the widened input of the network's last stage, its result, and smaller ones.
func (n ssdlite) maps(b *builder, x string) (maps []string) {
	swish := (*builder).hardSwish
	x = swish(b, b.conv(x, convolution{channels: 16, kernel: 3, stride: 2, pad: 1}))
	last := len(n.blocks) - 3
	for k, block := range n.blocks {
		wide := block.widened(b, x)
		if k == last {
			maps = append(maps, wide)
		}
		x = block.narrowed(b, x, wide)
	}
	x = pointwise(b, x, 6*b.shapes[x][1], swish)
	maps = append(maps, x)
	for _, channels := range n.extra {
		x = pointwise(b, x, channels/2, (*builder).relu6)
		x = depthwise(b, x, 3, 2, (*builder).relu6)
		x = pointwise(b, x, channels, (*builder).relu6)
		maps = append(maps, x)
	}
	return maps
}

// predicted computes the given number of values for each box of a map: (batch, boxes, numbers).
func (n ssdlite) predicted(b *builder, x string, numbers int64) string {
	y := depthwise(b, x, 3, 1, (*builder).relu6)
	y = b.conv(y, convolution{channels: boxesAt * numbers, kernel: 1, bias: learned})
	s := b.shapes[y]
	y = b.transpose(b.reshape(y, s[0], boxesAt, numbers, s[2], s[3]), 0, 3, 4, 1, 2)
	return b.reshape(y, s[0], s[2]*s[3]*boxesAt, numbers)
}

// defaults returns the centres and the sizes of the reference boxes, (1, boxes, 4), relative to the image: squares
// of two scales, and rectangles with aspect ratios of 2 to 1 and 3 to 1.
func (n ssdlite) defaults(b *builder, maps []string) string {
	const smallest, largest = 0.2, 0.95
	scale := func(k int) float64 {
		if k == len(maps) {
			return 1
		}
		return smallest + (largest-smallest)*float64(k)/float64(len(maps)-1)
	}
	var list []float32
	for k, m := range maps {
		between := math.Sqrt(scale(k) * scale(k+1))
		long2, long3 := scale(k)*math.Sqrt2, scale(k)*math.Sqrt(3)
		sizes := [boxesAt][2]float64{{scale(k), scale(k)}, {between, between}, {long2, long2 / 2}, {long2 / 2, long2}, {long3, long3 / 3}, {long3 / 3, long3}}
		rows, columns := b.shapes[m][2], b.shapes[m][3]
		for at := range rows * columns {
			x, y := (float64(at%columns)+0.5)/float64(columns), (float64(at/columns)+0.5)/float64(rows)
			for _, s := range sizes {
				list = append(list, float32(x), float32(y), float32(min(1, s[0])), float32(min(1, s[1])))
			}
		}
	}
	return b.constant("boxes", array.FromFloat32(list, 1, int64(len(list)/4), 4))
}

// boxes returns the corners of boxes given as offsets from reference boxes. Offsets of centres are in tenths of a
// size, those of sizes logarithms in fifths.
func (b *builder) boxes(offsets, from string) string {
	centre, size := b.part(from, 2, 0, 2), b.part(from, 2, 2, 4)
	moved := b.broadcast("Div", b.part(offsets, 2, 0, 2), b.scalar(10))
	centre = b.sum(b.product(moved, size), centre)
	limit := b.scalar(float32(math.Log(1000.0 / 16)))
	grown := b.broadcast("Min", b.broadcast("Div", b.part(offsets, 2, 2, 4), b.scalar(5)), limit)
	half := b.product(b.product(b.unary("Exp", grown), size), b.scalar(0.5))
	return b.joined(2, b.broadcast("Sub", centre, half), b.sum(centre, half))
}

// detect outputs the boxes of each class that overlap no better one, their scores and their classes.
func (n ssdlite) detect(b *builder, boxes, scores string) {
	const overlap, floor = 0.55, 0.001
	s := b.shapes[scores]
	limit := s[0] * s[1] * min(n.detections, s[2])
	found := b.add("NonMaxSuppression", []int64{limit, 3}, []string{boxes, scores, b.indices(n.detections), b.scalar(overlap), b.scalar(floor)})
	column := func(k int64) string {
		return b.add("Squeeze", []int64{limit}, []string{b.gather(found, b.indices(k), 1), b.indices(1)})
	}
	pairs := b.gather(found, b.indices(0, 2), 1)
	b.typedOutput(b.add("GatherND", []int64{limit, 4}, []string{boxes, pairs}), "boxes", array.Float32, "detections")
	b.typedOutput(b.add("GatherND", []int64{limit}, []string{scores, found}), "scores", array.Float32, "detections")
	b.typedOutput(column(1), "labels", array.Int64, "detections")
	b.typedOutput(column(0), "images", array.Int64, "detections")
}
