package modelzoo

import (
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// network is a model that can be built.
type network struct {
	Description
	opset, maxSeq int64
	// build adds the inputs, all layers, and the outputs.
	build func(b *builder, s size)
}

// size holds the user's choices.
type size struct {
	batch, seq int64
	// max is the largest number of tokens that the network reads.
	max int64
	// past, fused and last are as in Options.
	past, fused, last bool
}

// opens reports whether the network supports an open batch.
func (n *network) opens() bool {
	return n.maxSeq > 0 && n.Name != lstmNetwork.Name || strings.HasPrefix(n.Name, "resnet-") || strings.HasPrefix(n.Name, "mobilenet-") || n.Name == "mlp"
}

// isDecoder reports whether the network supports a past.
func (n *network) isDecoder() bool { return strings.HasPrefix(n.Name, "gpt-") || n.isLlama() }

func (n *network) isLlama() bool { return strings.HasPrefix(n.Name, "llama-") }

// networks is sorted alphabetically.
var networks = []network{
	text("bert-base", "BERT, 12 layers of 768 (Devlin et al. 2019)", 512, 13, bert{12, 768, 12}.build),
	text("bert-small", "BERT, 4 layers of 512 (Turc et al. 2019)", 512, 13, bert{4, 512, 8}.build),
	text("bert-tiny", "BERT, 2 layers of 128 (Turc et al. 2019)", 512, 13, bert{2, 128, 2}.build),
	withOpset(17, image("convnext-tiny", "depthwise 7×7 convolutions between dense layers (Liu et al. 2022)",
		convnext{[]int64{96, 192, 384, 768}, []int{3, 3, 9, 3}}.build)),
	dcganNetwork,
	image("densenet-121", "dense blocks of 6, 12, 24, 16 layers (Huang et al. 2017)", densenet{32, []int{6, 12, 24, 16}}.build),
	image("efficientnet-b0", "scaled mobile blocks with attention to channels (Tan and Le 2019)", efficientnet),
	text("gpt-small", "GPT-2, 12 layers of 768, next-token scores (Radford et al. 2019)", 1024, 17, gpt{12, 768, 12, 50257}.build),
	{Description{"inception-v3", "299×299 images (Szegedy et al. 2016)", 0}, 13, 0, classifier(inceptionV3{1}.build, 3, 299, 299)},
	text("llama-small", "SmolLM, 30 layers of 576, 9 heads of 3 keys and values (Hugging Face 2024)", 2048, 17, llama{30, 576, 9, 3, 1536, 49152}.build),
	text("llama-tiny", "Llama, 5 layers of 64, 8 heads of 4 keys and values (llama2.c's stories260K)", 512, 17, llama{5, 64, 8, 4, 172, 512}.build),
	lstmNetwork,
	{Description{"mlp", "784-256-128-10 perceptron", 0}, 13, 0, classifier(mlp, 784)},
	image("mobilenet-v1", "depthwise and 1×1 convolutions in turn (Howard et al. 2017)", mobilenetV1),
	image("mobilenet-v2", "inverted residuals (Sandler et al. 2018)", mobilenetV2),
	withOpset(14, image("mobilenet-v3", "the large form: attention to channels, hard swish (Howard et al. 2019)", mobilenetV3)),
	image("regnet-y-400mf", "grouped convolutions, 8 channels a group, and attention to channels (Radosavovic et al. 2020)",
		regnet{8, []regnetStage{{48, 1}, {104, 3}, {208, 6}, {440, 6}}}.build),
	image("resnet-101", "bottlenecks 3, 4, 23, 3 (He et al. 2016)", resnet{bottleneck, 4, []int{3, 4, 23, 3}}.build),
	image("resnet-152", "bottlenecks 3, 8, 36, 3 (He et al. 2016)", resnet{bottleneck, 4, []int{3, 8, 36, 3}}.build),
	image("resnet-18", "basic blocks 2, 2, 2, 2 (He et al. 2016)", resnet{basicBlock, 1, []int{2, 2, 2, 2}}.build),
	image("resnet-34", "basic blocks 3, 4, 6, 3 (He et al. 2016)", resnet{basicBlock, 1, []int{3, 4, 6, 3}}.build),
	image("resnet-50", "bottlenecks 3, 4, 6, 3 (He et al. 2016)", resnet{bottleneck, 4, []int{3, 4, 6, 3}}.build),
	image("resnet-50-v2", "bottlenecks that normalise first (He et al. 2016, Identity mappings)", resnetV2{[]int{3, 4, 6, 3}}.build),
	{Description{"resnet3d-18", "16 frames of 112×112 (Tran et al. 2018, R3D)", 0}, 13, 0, classifier(resnet3D{[]int{2, 2, 2, 2}}.build, 3, 16, 112, 112)},
	image("resnext-50-32x4d", "bottlenecks 3, 4, 6, 3 in 32 groups (Xie et al. 2017)", resnet{grouped(32, 4), 4, []int{3, 4, 6, 3}}.build),
	image("shufflenet-v2", "width 1: half of the channels is convolved, all are shuffled (Ma et al. 2018)", shufflenetV2{[3]int64{116, 232, 464}, 1024}.build),
	image("squeezenet-v1.1", "fire modules (Iandola et al. 2016)", squeezenet),
	{Description{"ssdlite-320", "320×320 images: MobileNet v3, boxes of 91 classes and their suppression (Howard et al. 2019; torchvision)", 0}, 14, 0,
		ssdlite{size: 320, classes: 91, blocks: mobilenetV3Blocks(2), extra: []int64{512, 256, 256, 128}, detections: 100}.build},
	image("vgg-11", "8 convolutions (Simonyan and Zisserman 2015)", vgg{[]int{1, 1, 2, 2, 2}}.build),
	image("vgg-16", "13 convolutions (Simonyan and Zisserman 2015)", vgg{[]int{2, 2, 3, 3, 3}}.build),
	image("vgg-19", "16 convolutions (Simonyan and Zisserman 2015)", vgg{[]int{2, 2, 4, 4, 4}}.build),
	withOpset(17, image("vit-b-16", "vision transformer, 12 layers of 768, patches of 16×16 (Dosovitskiy et al. 2021)", vit{12, 768, 12, 16}.build)),
}

// classifier builds on an input "data" of the shape after the batch; its output is "out".
func classifier(build func(b *builder, x string) string, shape ...int64) func(b *builder, s size) {
	return func(b *builder, s size) {
		b.output(build(b, b.input("data", array.Float32, append([]int64{s.batch}, shape...)...)), "out", "batch")
	}
}

// image returns a network that classifies 224×224 images into 1000 classes.
func image(name, about string, build func(b *builder, x string) string) network {
	return network{Description{name, about, 0}, 13, 0, classifier(build, 3, 224, 224)}
}

// text returns a network that reads up to maxSeq tokens.
func text(name, about string, maxSeq, opset int64, build func(b *builder, s size)) network {
	return network{Description{name, about, 128}, opset, maxSeq, build}
}

func withOpset(version int64, n network) network {
	n.opset = version
	return n
}
