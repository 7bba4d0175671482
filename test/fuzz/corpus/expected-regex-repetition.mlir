// expected-error-re@+1 {{ {{a{99999999999}b}} }}
module {
