package frontend_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// image returns a model with an input (n, channels, h, w).
func image(channels int64) modeltest.Model {
	return modeltest.New().Opset(18).Input("x", 2, channels, 12, 12).Open("x", 0, "n").Open("x", 2, "h").Open("x", 3, "w")
}

// imageBounds are those of an image, and imageSizes some extents.
var (
	imageBounds = map[string]frontend.Bounds{"n": {Min: 1, Max: 2}, "h": {Min: 4, Max: 12}, "w": {Min: 4, Max: 12}}
	imageSizes  = []map[string]int64{{"n": 1, "h": 4, "w": 4}, {"n": 1, "h": 7, "w": 10}, {"n": 2, "h": 12, "w": 5}, {"n": 2, "h": 12, "w": 12}}
)

// checkImages compares models of images with the models of some sizes.
func checkImages(t *testing.T, models map[string]*onnx.Model) {
	t.Helper()
	for name, m := range models {
		t.Run(name, func(t *testing.T) { modeltest.CheckOpen(t, m, imageBounds, imageSizes...) })
	}
}

// framed completes a model with outputs that are padded to a fixed extent along their spatial axes.
func framed(m modeltest.Model, spatial int, names ...string) *onnx.Model {
	axes := make([]int64, spatial)
	for k := range axes {
		axes[k] = int64(k + 2)
	}
	m = m.Known("axes", numbers(axes...)).Known("frame", numbers(slices.Repeat([]int64{40}, spatial)...)).Known("before", numbers(make([]int64, spatial)...))
	var outputs []string
	for _, y := range names {
		m = m.Node(y+"s = Shape "+y, modeltest.Int("start", 2)).Node(y+"a = Sub frame "+y+"s").Node(y+"p = Concat before "+y+"a", modeltest.Int("axis", 0)).
			Node(y + "f = Pad " + y + " " + y + "p _ axes")
		outputs = append(outputs, y+"f")
	}
	return m.Output(outputs...)
}

func stringAttribute(name, value string) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrString, String: value}
}

func TestConvolutionsOfOpenExtents(t *testing.T) {
	models := map[string]*onnx.Model{
		"depthwise":         framed(image(3).Constant("w", 3, 1, 3, 3).Node("y = Conv x w", modeltest.Int("group", 3)), 2, "y"),
		"groups":            framed(image(4).Constant("w", 6, 2, 3, 3).Constant("b", 6).Node("y = Conv x w b", modeltest.Int("group", 2), modeltest.Same3x3), 2, "y"),
		"pointwise":         framed(image(3).Constant("w", 4, 3, 1, 1).Node("y = Conv x w"), 2, "y"),
		"strided pointwise": framed(image(3).Constant("w", 4, 3, 1, 1).Node("y = Conv x w", modeltest.Ints("strides", 2, 2)), 2, "y"),
		"dilated":           framed(image(3).Constant("w", 4, 3, 2, 2).Node("y = Conv x w", modeltest.Ints("dilations", 3, 2)), 2, "y"),
		"uneven":            framed(image(3).Constant("w", 4, 3, 3, 2).Node("y = Conv x w", modeltest.Ints("pads", 0, 1, 2, 0), modeltest.Ints("strides", 3, 2)), 2, "y"),
		"chain": framed(image(3).Constant("w", 8, 3, 3, 3).Constant("v", 8, 8, 3, 3).Node("a = Conv x w", modeltest.Same3x3, modeltest.Ints("strides", 2, 2)).Node("b = Relu a").
			Node("y = Conv b v", modeltest.Same3x3, modeltest.Ints("strides", 2, 2)), 2, "y"),
		"padded before": framed(image(3).Known("pads", numbers(0, 0, 1, 1, 0, 0, 1, 1)).Constant("w", 8, 3, 3, 3).Node("p = Pad x pads").Node("y = Conv p w"), 2, "y"),
		"3d": framed(modeltest.New().Opset(18).Input("x", 2, 2, 5, 12, 12).Open("x", 0, "n").Open("x", 3, "h").Open("x", 4, "w").Constant("w", 4, 2, 2, 3, 3).
			Node("y = Conv x w", modeltest.Ints("strides", 1, 2, 2), modeltest.Ints("pads", 1, 1, 1, 0, 1, 1)), 3, "y"),
	}
	for _, auto := range []string{"VALID", "SAME_UPPER", "SAME_LOWER"} {
		for _, stride := range []int64{1, 2, 3} {
			models[fmt.Sprint(auto, stride)] = framed(image(3).Constant("w", 4, 3, 3, 3).
				Node("y = Conv x w", stringAttribute("auto_pad", auto), modeltest.Ints("strides", stride, stride)), 2, "y")
		}
	}
	checkImages(t, models)
	row := modeltest.New().Opset(18).Input("x", 2, 3, 12).Open("x", 0, "n").Open("x", 2, "h").Constant("w", 4, 3, 3).
		Node("y = Conv x w", modeltest.Ints("strides", 2), modeltest.Ints("pads", 1, 1))
	modeltest.CheckOpen(t, framed(row, 1, "y"), map[string]frontend.Bounds{"n": {Min: 1, Max: 2}, "h": {Min: 1, Max: 12}}, map[string]int64{"n": 2, "h": 1}, map[string]int64{"n": 1, "h": 6}, map[string]int64{"n": 2, "h": 11})
}

func TestTransposedConvolutionsOfOpenExtents(t *testing.T) {
	models := map[string]*onnx.Model{}
	two := modeltest.Ints("strides", 2, 2)
	for name, attributes := range map[string][]*onnx.Attribute{
		"plain":            nil,
		"pads":             {modeltest.Ints("pads", 1, 1, 1, 1)},
		"double":           {two},
		"double with pads": {two, modeltest.Ints("pads", 1, 0, 0, 1), modeltest.Ints("output_padding", 1, 1)},
		"three":            {modeltest.Ints("strides", 3, 2), modeltest.Ints("pads", 1, 2, 1, 0)},
		"dilated":          {two, modeltest.Ints("dilations", 2, 2)},
		"same upper":       {two, stringAttribute("auto_pad", "SAME_UPPER")},
		"same lower":       {two, stringAttribute("auto_pad", "SAME_LOWER")},
		"valid":            {two, stringAttribute("auto_pad", "VALID")},
		"given":            {two, modeltest.Ints("output_shape", 26, 26)},
	} {
		for _, channels := range []int64{2, 16} {
			models[fmt.Sprint(name, channels)] = framed(image(3).Constant("w", 3, channels, 3, 3).Node("y = ConvTranspose x w", attributes...), 2, "y")
		}
	}
	models["groups"] = framed(image(4).Constant("w", 4, 3, 3, 3).Constant("b", 6).Node("y = ConvTranspose x w b", modeltest.Int("group", 2), two), 2, "y")
	models["depthwise"] = framed(image(4).Constant("w", 4, 1, 4, 4).Node("y = ConvTranspose x w", modeltest.Int("group", 4), two, modeltest.Ints("pads", 1, 1, 1, 1)), 2, "y")
	checkImages(t, models)
}

func TestPoolingsOfOpenExtents(t *testing.T) {
	models := map[string]*onnx.Model{
		"global average": framed(image(3).Node("y = GlobalAveragePool x"), 2, "y"),
		"global largest": framed(image(3).Node("y = GlobalMaxPool x"), 2, "y"),
		"global norm":    framed(image(3).Node("y = GlobalLpPool x"), 2, "y"),
		"open channels":  framed(modeltest.New().Opset(18).Input("x", 2, 12, 12, 12).Open("x", 0, "n").Open("x", 1, "h").Open("x", 3, "w").Node("y = MaxPool x", modeltest.Ints("kernel_shape", 2, 2)), 2, "y"),
	}
	kernel := modeltest.Ints("kernel_shape", 3, 3)
	for name, attributes := range map[string][]*onnx.Attribute{
		"plain":          {kernel},
		"pads":           {kernel, modeltest.Same3x3},
		"uneven":         {kernel, modeltest.Ints("strides", 2, 3), modeltest.Ints("pads", 1, 0, 0, 2)},
		"ceil":           {kernel, modeltest.Ints("strides", 2, 2), modeltest.Int("ceil_mode", 1)},
		"ceil with pads": {kernel, modeltest.Ints("strides", 2, 2), modeltest.Int("ceil_mode", 1), modeltest.Same3x3},
		"ceil by 3":      {modeltest.Ints("kernel_shape", 2, 2), modeltest.Ints("strides", 3, 3), modeltest.Int("ceil_mode", 1), modeltest.Ints("pads", 1, 1, 1, 1)},
		"same upper":     {kernel, modeltest.Ints("strides", 2, 2), stringAttribute("auto_pad", "SAME_UPPER")},
		"same lower":     {kernel, modeltest.Ints("strides", 2, 2), stringAttribute("auto_pad", "SAME_LOWER")},
	} {
		with := modeltest.Int("count_include_pad", 1)
		models["largest "+name] = framed(image(3).Node("y = MaxPool x", attributes...), 2, "y")
		models["largest and places "+name] = framed(image(3).Node("y z = MaxPool x", attributes...), 2, "y", "z")
		models["average "+name] = framed(image(3).Node("y = AveragePool x", attributes...), 2, "y")
		models["average with pads "+name] = framed(image(3).Node("y = AveragePool x", append(attributes, with)...), 2, "y")
		models["norm "+name] = framed(image(3).Node("y = LpPool x", attributes...), 2, "y")
	}
	models["first fastest"] = framed(image(3).Node("y z = MaxPool x", kernel, modeltest.Int("storage_order", 1)), 2, "y", "z")
	checkImages(t, models)
}

func TestUnpoolingsOfOpenExtents(t *testing.T) {
	kernel, strides := modeltest.Ints("kernel_shape", 2, 2), modeltest.Ints("strides", 2, 2)
	checkImages(t, map[string]*onnx.Model{
		"natural": framed(image(3).Node("p i = MaxPool x", kernel, strides).Node("y = MaxUnpool p i", kernel, strides), 2, "y"),
		"given":   framed(image(3).Node("p i = MaxPool x", kernel, strides).Node("s = Shape x").Node("y = MaxUnpool p i s", kernel, strides), 2, "y"),
	})
}

func decimals(v ...float32) *array.Array { return array.FromFloat32(v, int64(len(v))) }

// resizedAttributes returns the combinations of modes and transformations that Resize defines.
func resizedAttributes() map[string][]*onnx.Attribute {
	all := map[string][]*onnx.Attribute{
		"linear, antialias":  {stringAttribute("mode", "linear"), modeltest.Int("antialias", 1)},
		"cubic, antialias":   {stringAttribute("mode", "cubic"), modeltest.Int("antialias", 1)},
		"cubic, exclude":     {stringAttribute("mode", "cubic"), modeltest.Int("exclude_outside", 1)},
		"linear, symmetric":  {stringAttribute("mode", "linear"), stringAttribute("coordinate_transformation_mode", "half_pixel_symmetric")},
		"nearest, symmetric": {stringAttribute("coordinate_transformation_mode", "half_pixel_symmetric")},
	}
	for _, mode := range []string{"nearest", "linear", "cubic"} {
		for _, transformation := range []string{"half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"} {
			all[mode+", "+transformation] = []*onnx.Attribute{stringAttribute("mode", mode), stringAttribute("coordinate_transformation_mode", transformation)}
		}
	}
	for _, rounding := range []string{"round_prefer_ceil", "floor", "ceil"} {
		all["nearest, "+rounding] = []*onnx.Attribute{stringAttribute("nearest_mode", rounding), stringAttribute("coordinate_transformation_mode", "asymmetric")}
	}
	return all
}

func TestResizingByScalesOfOpenExtents(t *testing.T) {
	models := map[string]*onnx.Model{}
	for name, attributes := range resizedAttributes() {
		for _, by := range [][]float32{{1, 1, 2, 2}, {1, 1, 0.5, 3}, {1, 1, 1.25, 0.7}} {
			models[fmt.Sprint(name, by)] = framed(image(3).Known("by", decimals(by...)).Node("y = Resize x _ by", attributes...), 2, "y")
		}
	}
	models["old"] = framed(image(3).Opset(10).Known("by", decimals(1, 1, 2, 0.5)).Node("y = Resize x by"), 2, "y")
	checkImages(t, models)
}

func TestResizingToComputedSizes(t *testing.T) {
	bounds := map[string]frontend.Bounds{"h": {Min: 2, Max: 9}, "w": {Min: 2, Max: 9}, "a": {Min: 1, Max: 11}}
	for name, attributes := range resizedAttributes() {
		t.Run(name, func(t *testing.T) {
			m := modeltest.New().Opset(18).Input("x", 1, 2, 9, 9).Open("x", 2, "h").Open("x", 3, "w").Input("like", 11, 5).Open("like", 0, "a").
				Known("kept", numbers(1, 2)).Node("s = Shape like").Node("sizes = Concat kept s", modeltest.Int("axis", 0)).
				Node("y = Resize x _ _ sizes", attributes...).Output("y")
			modeltest.CheckOpen(t, m, bounds, map[string]int64{"h": 2, "w": 5, "a": 1}, map[string]int64{"h": 9, "w": 2, "a": 4}, map[string]int64{"h": 3, "w": 9, "a": 11})
		})
	}
}

func TestResizingOfARegion(t *testing.T) {
	crop := []*onnx.Attribute{stringAttribute("coordinate_transformation_mode", "tf_crop_and_resize"), {Name: "extrapolation_value", Type: onnx.AttrFloat, Float: 7}}
	region := func() modeltest.Model { return image(3).Known("roi", decimals(0.25, -0.5, 1.25, 0.75)) }
	models := map[string]*onnx.Model{}
	for _, mode := range []string{"nearest", "linear", "cubic"} {
		attributes := append(slices.Clone(crop), stringAttribute("mode", mode), modeltest.Ints("axes", 2, 3))
		models[mode] = region().Known("sizes", numbers(5, 4)).Node("y = Resize x roi _ sizes", attributes...).Output("y")
		models[mode+" by scales"] = framed(image(3).Known("roi", decimals(0, -0.5, 1, 0.5)).Known("by", decimals(1.5, 0.5)).Node("y = Resize x roi by", attributes...), 2, "y")
	}
	checkImages(t, models)
}

func TestScalesThatDependOnOpenExtents(t *testing.T) {
	// The scale h/8 of a fixed image is a number that depends on h.
	m := modeltest.New().Opset(18).Input("x", 1, 2, 8, 8).Input("like", 12).Open("like", 0, "h").Known("ones", decimals(1, 1)).Known("eight", decimals(8)).
		Node("s = Shape like").Node("f = Cast s", modeltest.Int("to", 1)).Node("q = Div f eight").Node("by = Concat ones q q", modeltest.Int("axis", 0)).
		Node("y = Resize x _ by", stringAttribute("mode", "linear")).Output("y")
	modeltest.CheckOpen(t, m, map[string]frontend.Bounds{"h": {Min: 1, Max: 12}}, map[string]int64{"h": 1}, map[string]int64{"h": 7}, map[string]int64{"h": 12})
}

// unet returns a small network with two levels. Its decoder brings x to the height and width of the encoder's value by
// the nodes of grow, which make up from low and like. It halves extents, rounded up if ceil is 1.
func unet(ceil int64, grow func(m modeltest.Model, up, low, like string) modeltest.Model) *onnx.Model {
	half := modeltest.Ints("strides", 2, 2)
	m := image(3).Constant("w0", 4, 3, 3, 3).Constant("w1", 6, 4, 3, 3).Constant("w2", 8, 6, 3, 3).
		Node("c0 = Conv x w0", modeltest.Same3x3).Node("e0 = Relu c0").
		Node("c1 = Conv e0 w1", modeltest.Ints("pads", 1, 1, ceil, ceil), half).Node("e1 = Relu c1").
		Node("p1 = MaxPool e1", modeltest.Ints("kernel_shape", 2, 2), half, modeltest.Int("ceil_mode", ceil)).Node("e2 = Conv p1 w2", modeltest.Same3x3)
	m = grow(m, "u1", "e2", "e1").Node("j1 = Concat u1 e1", modeltest.Int("axis", 1)).Constant("w3", 6, 14, 3, 3).Node("d1 = Conv j1 w3", modeltest.Same3x3)
	return grow(m, "u0", "d1", "e0").Node("j0 = Concat u0 e0", modeltest.Int("axis", 1)).Constant("w4", 2, 10, 3, 3).Node("y = Conv j0 w4", modeltest.Same3x3).Output("y")
}

func TestNetworksThatGrowToTheSizesOfTheirEncoder(t *testing.T) {
	resize := func(attributes ...*onnx.Attribute) func(m modeltest.Model, up, low, like string) modeltest.Model {
		return func(m modeltest.Model, up, low, like string) modeltest.Model {
			return m.Node(up+"k = Shape "+low, modeltest.Int("end", 2)).Node(up+"s = Shape "+like, modeltest.Int("start", 2)).
				Node(up+"t = Concat "+up+"k "+up+"s", modeltest.Int("axis", 0)).Node(up+" = Resize "+low+" _ _ "+up+"t", attributes...)
		}
	}
	checkImages(t, map[string]*onnx.Model{
		"nearest": unet(0, resize(stringAttribute("coordinate_transformation_mode", "asymmetric"), stringAttribute("nearest_mode", "floor"))),
		"linear":  unet(1, resize(stringAttribute("mode", "linear"), stringAttribute("coordinate_transformation_mode", "pytorch_half_pixel"))),
		"cropped": unet(1, func(m modeltest.Model, up, low, like string) modeltest.Model {
			return m.Known(up+"x", numbers(2, 3)).Known(up+"0", numbers(0, 0)).Known(up+"by", decimals(1, 1, 2, 2)).Node(up+"b = Resize "+low+" _ "+up+"by").
				Node(up+"s = Shape "+like, modeltest.Int("start", 2)).Node(up + " = Slice " + up + "b " + up + "0 " + up + "s " + up + "x")
		}),
		"padded": unet(0, func(m modeltest.Model, up, low, like string) modeltest.Model {
			channels := map[string]int64{"e2": 8, "d1": 6}[low]
			return m.Constant(up+"w", channels, channels, 2, 2).Node(up+"b = ConvTranspose "+low+" "+up+"w", modeltest.Ints("strides", 2, 2)).
				Known(up+"x", numbers(2, 3)).Known(up+"two", numbers(2)).Node(up+"s = Shape "+like, modeltest.Int("start", 2)).Node(up+"o = Shape "+up+"b", modeltest.Int("start", 2)).
				Node(up+"d = Sub "+up+"s "+up+"o").Node(up+"h = Div "+up+"d "+up+"two").Node(up+"r = Sub "+up+"d "+up+"h").
				Node(up+"p = Concat "+up+"h "+up+"r", modeltest.Int("axis", 0)).Node(up + " = Pad " + up + "b " + up + "p _ " + up + "x")
		}),
	})
}

func TestOtherOperatorsOnImagesOfOpenExtents(t *testing.T) {
	models := map[string]*onnx.Model{
		"across channels": image(5).Node("y = LRN x", modeltest.Int("size", 3)).Output("y"),
		"centred":         image(3).Known("to", numbers(7, 6)).Node("y = CenterCropPad x to", modeltest.Ints("axes", 2, 3)).Output("y"),
		"blocks": image(3).Known("block", numbers(2, 3)).Known("axes", numbers(1)).Known("six", numbers(6)).Known("one", numbers(1)).
			Known("into", numbers(0, 18, -1)).Constant("w", 18, 3, 2, 3).Node("c = Conv x w").Node("f = Reshape c into").
			Node("s = Shape x", modeltest.Int("start", 2)).Node("y = Col2Im f s block").Output("y"),
		"regions": image(3).Known("rois", modeltest.Wave(5, 4, 3, 4)).Known("batch", numbers(0, 0, 0)).
			Node("y = RoiAlign x rois batch", modeltest.Int("sampling_ratio", 2), modeltest.Int("output_height", 2), modeltest.Int("output_width", 3)).Output("y"),
		"largest of regions": image(3).Known("rois", array.FromFloat32([]float32{0, 1, 0, 5, 6, 0, 2, 2, 3, 3}, 2, 5)).
			Node("y = MaxRoiPool x rois", modeltest.Ints("pooled_shape", 2, 2)).Output("y"),
		"deformed": framed(image(4).Constant("w", 4, 4, 3, 3).Constant("v", 27, 4, 3, 3).Known("parts", numbers(18, 9)).Node("c = Conv x v", modeltest.Same3x3).
			Node("offset mask = Split c parts", modeltest.Int("axis", 1)).Node("y = DeformConv x w offset _ mask", modeltest.Same3x3), 2, "y"),
		"grid": image(2).Constant("theta", 1, 2, 3).Known("none", numbers(0)).Node("s = Shape x").Node("like = Shape x", modeltest.Int("end", 1)).
			Known("rest", numbers(1, 1)).Node("to = Concat like rest rest", modeltest.Int("axis", 0)).Known("tile", numbers(1, 1, 1)).
			Node("repeat = Concat like rest", modeltest.Int("axis", 0)).Node("thetas = Tile theta repeat").Node("g = AffineGrid thetas s").Node("y = GridSample x g", stringAttribute("mode", "bilinear")).Output("y"),
	}
	for _, mode := range []string{"nearest", "bilinear", "bicubic"} {
		for _, padding := range []string{"zeros", "border", "reflection"} {
			for aligned := range int64(2) {
				models[fmt.Sprint("grid ", mode, padding, aligned)] = framed(image(2).Opset(16).Input("g", 2, 6, 7, 2).Open("g", 0, "n").Open("g", 1, "h").
					Node("y = GridSample x g", stringAttribute("mode", mode), stringAttribute("padding_mode", padding), modeltest.Int("align_corners", aligned)), 2, "y")
			}
		}
	}
	checkImages(t, models)
}

func TestPoolingsOfBytesWithOpenExtents(t *testing.T) {
	models := map[string]*onnx.Model{}
	kernel := []*onnx.Attribute{modeltest.Ints("kernel_shape", 3, 3), modeltest.Ints("strides", 2, 2)}
	for name, node := range map[string]modeltest.Model{
		"image":     byteImage().Node("q = QLinearGlobalAveragePool b s z s z"),
		"plain":     byteImage().Node("q = QLinearAveragePool b s z s z", kernel...),
		"pads":      byteImage().Node("q = QLinearAveragePool b s z s z", append(kernel, modeltest.Same3x3)...),
		"with pads": byteImage().Node("q = QLinearAveragePool b s z s z", append(kernel, modeltest.Same3x3, modeltest.Int("count_include_pad", 1))...),
	} {
		last := node.Graph.Nodes[len(node.Graph.Nodes)-1]
		last.Domain = "com.microsoft"
		node.Opsets = append(node.Opsets, onnx.Opset{Domain: "com.microsoft", Version: 1})
		models[name] = framed(node.Node("y = Cast q", modeltest.Int("to", 1)), 2, "y")
	}
	checkImages(t, models)
}

// byteImage returns an image of bytes b with a scale and a zero point.
func byteImage() modeltest.Model {
	return image(3).Known("hundred", decimals(100)).Known("s", array.Scalar(array.Float32, 0.01)).Known("z", array.Scalar(array.Uint8, 128)).
		Node("c = Mul x hundred").Node("a = Add c hundred").Node("b = Cast a", modeltest.Int("to", 2))
}

func TestWindowsThatDoNotFitAllExtents(t *testing.T) {
	for want, m := range map[string]*onnx.Model{
		"kernel of 5 does not fit the padded extent h in all executions: raise the least extent by --shape": image(3).Constant("w", 4, 3, 5, 5).Node("y = Conv x w").Output("y"),
		"the channels h of input [2 h 4 4] are open, which weights do not allow: fix them by --shape": modeltest.New().Opset(18).Input("x", 2, 12, 4, 4).Open("x", 1, "h").
			Constant("w", 4, 12, 3, 3).Node("y = Conv x w").Output("y"),
		`keep_aspect_ratio_policy "not_larger" is not supported where the scale of axis 3 is open: fix it by --shape`: image(3).Known("sizes", numbers(9, 9)).
			Node("y = Resize x _ _ sizes", modeltest.Ints("axes", 2, 3), stringAttribute("keep_aspect_ratio_policy", "not_larger")).Output("y"),
		"the result would have extent h - 6 in all executions: raise the least extent by --shape": image(3).Constant("w", 3, 4, 3, 3).
			Node("y = ConvTranspose x w", modeltest.Ints("pads", 4, 4, 4, 4)).Output("y"),
	} {
		_, err := frontend.Import(m, frontend.Options{Open: boundsOf(m)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// boundsOf returns the bounds of the open extents of a model's input.
func boundsOf(m *onnx.Model) map[string]frontend.Bounds {
	bounds := map[string]frontend.Bounds{}
	for _, d := range m.Graph.Inputs[0].Shape {
		if d.Param != "" {
			bounds[d.Param] = imageBounds[d.Param]
		}
	}
	return bounds
}
