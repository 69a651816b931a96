# Makes the two .rda beside it: no data set's numbers, but random ones, in the classes of recommenderlab.
library(Matrix)
setClass("ratingMatrix", representation(normalize = "ANY"))
setClass("realRatingMatrix", contains = "ratingMatrix", representation(data = "dgCMatrix"))
set.seed(6)
x <- round(runif(11, -10, 10), 2)
x[3] <- 0                        # a rating of 0, stored as it is
x[8] <- .Machine$double.xmin     # and as the smallest positive number
data <- sparseMatrix(i = c(1:5, 1:6), j = c(1:5, 2:5, 1:2), x = x, dims = c(6, 5),
                     dimnames = list(paste0("u", 1:6), paste0("j", 1:5)))
Jester5k <- new("realRatingMatrix", data = data, normalize = NULL)
attr(class(Jester5k), "package") <- "recommenderlab"
JesterJokes <- c(j1 = "a\xe9", j2 = "b\u00e9", j3 = iconv("c\u00e9", "UTF-8", "latin1"))
other <- 1:3
save(Jester5k, JesterJokes, file = "ratings-v2.rda", version = 2, compress = "bzip2")
save(Jester5k, JesterJokes, file = "ratings-v3.rda", version = 3, compress = "xz")
save(JesterJokes, other, file = "others.rda", version = 3, compress = "gzip")
options(width = 200)
print(data, digits = 17)
print(x[c(3, 8)])
