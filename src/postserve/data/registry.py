"""The data sets: their authors and terms, where they come from, and their size and hash."""

from typing import Literal, NamedTuple

from postserve.validation import one_of

MOST_BYTES = 2**26
"""The longest accepted download; the longest set, MovieLens 1M, has 6 MB."""


class DataSet(NamedTuple):
    """A set by the name that `postserve data fetch` takes.

    `form` is that of the download: the file itself, a zip with the file at `inside`, or an R workspace with
    the object `inside`, from which a matrix is kept. Size and hash are those of the file, or of the matrix's
    bytes (float32, row by row), since those of an .npz depend on the version of zlib.
    """

    name: str
    title: str
    folder: str
    file: str
    address: str
    download: str
    """The download's hash, as `algorithm:digits`."""
    form: Literal["file", "zip", "rda"]
    size: int
    sha256: str | None
    """None if it is not known: then the size is checked, and the loader checks what it reads."""
    terms: str
    cite: str
    inside: str = ""
    shape: tuple[int, int] | None = None
    """The shape of the kept matrix, if any, which its bytes do not determine."""

    @property
    def place(self) -> str:
        """Where the file is in a folder of data sets."""
        return f"{self.folder}/{self.file}"


_GROUPLENS = (
    "Research only; no commercial use and no redistribution without GroupLens's permission; "
    "no claim of its endorsement. Publications must acknowledge it."
)
_HARPER = (
    "F. M. Harper and J. A. Konstan, The MovieLens Datasets: History and Context, "
    "ACM Transactions on Interactive Intelligent Systems 5(4), 2015, doi:10.1145/2827872"
)
_RAW = "https://raw.githubusercontent.com/cran"

_SETS = (
    DataSet(
        name="movielens-100k",
        title="MovieLens 100K: 100,000 ratings of 1,682 movies by 943 users",
        folder="ml-100k",
        file="u.data",
        address="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        download="sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        form="zip",
        inside="ml-100k/u.data",
        size=1_979_173,
        sha256="06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
        terms=_GROUPLENS,
        cite=_HARPER,
    ),
    DataSet(
        name="movielens-1m",
        title="MovieLens 1M: 1,000,209 ratings of 3,706 movies by 6,040 users",
        folder="ml-1m",
        file="ratings.dat",
        address="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        download="sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        form="zip",
        inside="ml-1m/ratings.dat",
        size=24_594_131,
        sha256=None,
        terms=_GROUPLENS,
        cite=_HARPER,
    ),
    DataSet(
        name="hillstrom",
        title="Hillstrom's e-mail challenge: 64,000 customers, three randomised arms, visits and spend",
        folder="hillstrom",
        file="hillstrom.csv",
        address="http://www.minethatdata.com/Kevin_Hillstrom_MineThatData_E-MailAnalytics_DataMiningChallenge_2008.03.20.csv",
        download="sha256:0e5893329d8b93cefecc571777672028290ab69865718020c78c7284f291aece",
        form="file",
        size=3_964_977,
        sha256="0e5893329d8b93cefecc571777672028290ab69865718020c78c7284f291aece",
        terms="No licence is stated; its author posted it for everyone who would take up his challenge.",
        cite="K. Hillstrom, The MineThatData E-Mail Analytics and Data Mining Challenge, 2008",
    ),
    DataSet(
        name="actg175",
        title="ACTG 175: 2,139 patients in a randomised trial of four HIV treatments",
        folder="actg175",
        file="ACTG175.txt",
        address=f"{_RAW}/speff2trial/9fa954e262daa0dd8d078d8a843537467f7603df/data/ACTG175.txt",
        download="sha256:7b52e6b3701a1f24090ef0388f1c148d5286450f97276d9c8fbe611ce0c76779",
        form="file",
        size=173_361,
        sha256="7b52e6b3701a1f24090ef0388f1c148d5286450f97276d9c8fbe611ce0c76779",
        terms="Part of the R package speff2trial, which is under the GPL, version 2.",
        cite=(
            "S. M. Hammer et al., A trial comparing nucleoside monotherapy with combination therapy in "
            "HIV-infected adults with CD4 cell counts from 200 to 500 per cubic millimeter, "
            "New England Journal of Medicine 335, 1996, 1081-1090"
        ),
    ),
    DataSet(
        name="jester",
        title="Jester5k: 363,209 ratings of 100 jokes by 5,000 users",
        folder="jester5k",
        file="jester5k.npz",
        address=f"{_RAW}/recommenderlab/26bb4a9a16e567a9d46df59ce43c70cffeba3af6/data/Jester5k.rda",
        download="md5:b71f470be026b94985436a373e60066f",
        form="rda",
        inside="Jester5k",
        size=5_000 * 100 * 4,
        sha256="a7f0742114ef5c259e3cbb6bb58efc163fe49d5733a8d266b81ce94ab35366a1",
        terms="Part of the R package recommenderlab, which is under the GPL, version 2.",
        cite=(
            "K. Goldberg, T. Roeder, D. Gupta and C. Perkins, Eigentaste: A Constant Time Collaborative "
            "Filtering Algorithm, Information Retrieval 4(2), 2001, 133-151"
        ),
        shape=(5_000, 100),
    ),
)

SETS = {known.name: known for known in _SETS}


def data_set(name: str) -> DataSet:
    """A data set by its name.

    >>> data_set("movielens-100k").place
    'ml-100k/u.data'
    >>> data_set("movielens")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    postserve.errors.InvalidInput: name is 'movielens', wanted one of 'movielens-100k', 'movielens-1m', ...
    """
    return SETS[one_of("name", name, tuple(SETS))]
