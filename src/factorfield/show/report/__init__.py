"""A solution as one self-contained HTML page."""

from factorfield.show.report.page import check_page, page, write

__all__ = ["check_page", "page", "write"]
