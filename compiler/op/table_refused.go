package op

// refused gives the reason why known operators are unsupported, and a remedy.
var refused = map[string]string{
	"Bernoulli":         random,
	"Multinomial":       random,
	"RandomNormal":      random,
	"RandomNormalLike":  random,
	"RandomUniform":     random,
	"RandomUniformLike": random,
	"ImageDecoder":      "images are not decoded: export the model from the decoded image on",
	"StringNormalizer":  "strings are not supported: export the model from the tokens on",
	"StringConcat":      "strings are not supported: export the model from the tokens on",
	"StringSplit":       "strings are not supported: export the model from the tokens on",
	"RegexFullMatch":    "strings are not supported: export the model from the tokens on",
	"TfIdfVectorizer":   "counting n-grams is not supported: export the model from the counts on",
	"LabelEncoder":      "strings and maps are not supported: export the model from the tokens on",
	"DictVectorizer":    "maps are not supported: export the model from the tensor on",
	"CategoryMapper":    "strings are not supported: export the model from the tokens on",
	"FeatureVectorizer": "operators of ai.onnx.ml are not supported: export the model without them",
}

// random is the error for operators that draw random numbers: their results are not reproducible.
const random = "random numbers are not supported: export the model for inference, or with the numbers as an input"
